// The names of the norms in front of attention and dense MLPs, in the layer or fused with what is behind
// them.
#pragma once

#include <string_view>

#include "convert/layers/layer_migration.h"
#include "core/hybrid/kind.h"

namespace mckpt {

// The name behind the layer, where its norm is to lie; the same for everything else.
std::string_view moved_norm(std::string_view rest, LayerKind kind, NormPlace to);
// Whether it is a state of a module that is gone where norms are fused: "input_layernorm._extra_state".
bool is_state_of_norm(std::string_view rest, LayerKind kind);

}  // namespace mckpt
