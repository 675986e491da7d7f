// Tensors of a model that no optimizer has states of: buffers, by the last part of their names. Whoever asks
// for the states of a parameter leaves these out.
#pragma once

#include <string_view>

namespace mckpt::impl {

// Whether the tensor is a buffer: "decoder.layers.0.mlp.router.expert_bias".
bool is_without_states(std::string_view name);

}  // namespace mckpt::impl
