// The parameters of every layer of a torch_dist checkpoint of a hybrid model, by which native_parts() tells
// how many rows the parts of a fused one have.
#pragma once

#include <map>

#include "convert/keys/key_section.h"
#include "convert/layers/native_parts.h"
#include "io/store/store.h"

namespace mckpt {

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

}  // namespace mckpt
