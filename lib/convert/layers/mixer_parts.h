// The parts in which torch_dist stores the fused parameters of mixers. Megatron itself never writes them
// whole there; its offline converter from GPT models does, in the order of a single rank:
//
//   mixer.in_proj.weight            z x B C dt                          rows of a Mamba mixer
//   mixer.conv1d.weight .bias       x B C
//   self_attention.in_proj.weight   query key value z beta alpha        of a gated delta net
//                                   query key value z f b w             of its second version
//   self_attention.conv1d.weight    query key value
//
// The sizes of the parts follow from the shapes of other parameters of the layer. For a Mamba mixer with
// out_proj [h, 64], A_log [8] and conv1d [96, ...]: z 64, x 64, B 16, C 16, dt 8, so in_proj has 168 rows.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <vector>

#include "convert/keys/key_section.h"
#include "core/hybrid/names.h"
#include "io/store/store.h"

namespace mckpt::impl {

// The rows [first_row, first_row + rows) of a fused parameter.
struct NativePart {
  std::string_view name;  // "z"
  i64 first_row = 0, rows = 0;
};

// Returns the dimensions of a parameter of the layer, by its name behind the layer; empty if there is none.
using LayerDims = std::function<std::span<const i64>(std::string_view rest)>;

// The name under which the parts are stored, "mixer.conv1d.weight" for "mixer.conv1d_weight"; nothing for a
// parameter that is not fused.
std::optional<std::string_view> fused_name(LayerKind kind, std::string_view rest);
// The parts of a fused parameter, by the shapes of the other parameters of the layer. Sets the fault
// kBadSplit if they do not add up. pre: `fused` is a result of fused_name().
std::vector<NativePart> native_parts(std::string_view fused, const LayerDims& dims,
                                     std::optional<NameFault>& fault);

// The parameters of every layer of a torch_dist checkpoint of a hybrid model: the shapes that native_parts()
// needs.
class MixerShapes {
 public:
  // pre: `names` is of the checkpoint's form. The store outlives this object.
  MixerShapes(const Store& store, const LayerNames& names);

  // The parts of a tensor of the layer, `fused` as fused_name() returns it. Sets a fault if the tensor does
  // not have the rows of the parts, or has them in several chunks: which rank has which rows of a part is not
  // known then.
  std::vector<NativePart> parts(i32 tensor, i64 layer, std::string_view fused,
                                std::optional<NameFault>& fault) const;

 private:
  const Store& store_;
  std::vector<std::map<std::string, i32, std::less<>>> layer_;  // tensors by name, by physical layer
};

}  // namespace mckpt::impl
