// Names of torch_dist for a hybrid model with groups. The layers of a group share the group's number, where a
// model in memory has a number for each member too (core/hybrid/names.h). A writer takes the member out of
// the name; a reader sees the layers under the names of memory already (convert/layers/model_layers.h).
//
//   pattern [M-]*    decoder.layers.0.layers.1.mlp.linear_fc1.weight    decoder.layers.0.mlp.linear_fc1.weight
//                    decoder.layers.1.self_attention...                 decoder.layers.1.self_attention...
//                    decoder.final_norm.weight                          decoder.final_layernorm.weight
#pragma once

#include <string>
#include <string_view>

#include "core/hybrid/names.h"

namespace mckpt::impl {

struct LayerPattern;

class GroupedPlaces {
 public:
  // The pattern outlives this object. Throws kBadPattern if two layers of a group would have the same names.
  explicit GroupedPlaces(const LayerPattern& groups);

  // The name in torch_dist of a parameter, by its name in memory.
  std::string of(std::string_view name) const;

 private:
  LayerNames members_, stored_;
};

}  // namespace mckpt::impl
