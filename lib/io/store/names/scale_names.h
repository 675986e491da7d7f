// Names of the tensors that a quantised weight has beside its codes, in the spellings of all dialects:
//
//   model.layers.0.mlp.up_proj.weight             codes
//   model.layers.0.mlp.up_proj.weight_scale_inv   its scales: scaled_name() is the name above
//   model.layers.0.mlp.up_proj.input_scale        a scale of activations, with which no weight is computed
#pragma once

#include <string_view>

namespace mckpt::impl {

// The name of the values that a tensor of this name, read as their scale, shape or zero point, belongs to; ""
// for any other name.
std::string_view scaled_name(std::string_view name);

// Whether the name belongs to a scale or zero point of activations or of a cache.
bool is_activation_scale(std::string_view name);

// Either of them: a few numbers that neighbours often share.
inline bool is_beside_codes(std::string_view name) {
  return is_activation_scale(name) || !scaled_name(name).empty();
}

}  // namespace mckpt::impl
