// The parts in which torch_dist stores the fused parameters of mixers. Megatron never writes them whole
// there; its offline converter from GPT models does, in the order of a single rank:
//
//   mixer.in_proj.weight            z x B C dt                          rows of a Mamba mixer
//   mixer.conv1d.weight .bias       x B C
//   self_attention.in_proj.weight   query key value z beta alpha        of a gated delta net
//                                   query key value z f b w             of its second version
//   self_attention.conv1d.weight    query key value
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

enum class LayerKind : u8;
class LayerNames;
class Store;
struct NameFault;

struct NativePart {
  std::string_view name;  // "z"
  i64 first_row = 0, rows = 0;
};

// The dimensions of a parameter of the layer by its name behind the layer; empty where there is none.
using LayerDims = std::function<std::span<const i64>(std::string_view rest)>;

// The name whose parts are stored, "mixer.conv1d.weight" for "mixer.conv1d_weight"; nothing for a parameter
// that is not fused.
std::optional<std::string_view> fused_name(LayerKind kind, std::string_view rest);
// Its parts, whose sizes the other parameters of the layer tell. kBadSplit where they do not add up.
// pre: fused_name() has it.
std::vector<NativePart> native_parts(std::string_view fused, const LayerDims& dims,
                                     std::optional<NameFault>& fault);

// The parameters of every layer of a torch_dist checkpoint of a hybrid model, by which native_parts() tells
// how many rows the parts of a fused one have.
class MixerShapes {
 public:
  MixerShapes(const Store& store, const LayerNames& names);  // of its form; the store outlives this

  // The parts of a tensor of the layer, `fused` as fused_name() calls it. Nothing where its rows are not
  // theirs, or lie in several chunks: which rank has which rows of a part is not known then.
  std::vector<NativePart> parts(i32 tensor, i64 layer, std::string_view fused,
                                std::optional<NameFault>& fault) const;

 private:
  const Store& store_;
  std::vector<std::map<std::string, i32, std::less<>>> layer_;  // tensors by name, by physical layer
};

}  // namespace mckpt::impl
