// What layers keep beside their weights: the norms in front of attention and dense MLPs, which are a module of
// the layer or fused with what is behind them, and the extra states of modules.
#pragma once

#include <string_view>

#include "core/base/int.h"

namespace mckpt::impl {

enum class LayerKind : u8;
enum class NormPlace : u8;
class PickleValue;

// The name behind the layer, where its norm is to lie; the same for everything else.
std::string_view moved_norm(std::string_view rest, LayerKind kind, NormPlace to);
// Whether it is a state of a module that is gone where norms are fused: "input_layernorm._extra_state".
bool is_state_of_norm(std::string_view rest, LayerKind kind);

// Whether an extra state, such as the history of FP8 scales, is that of a module without any: None, no bytes,
// a tensor of no items, or a list of such.
bool is_empty_state(const PickleValue& value);

}  // namespace mckpt::impl
