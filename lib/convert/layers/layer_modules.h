// The parts of layers beside their weights: the norms in front of attention, mixers and dense MLPs, which are
// a module of the layer or fused with the module behind them, and the extra states of modules.
//
//   apart   input_layernorm.weight
//   fused   self_attention.linear_qkv.layer_norm_weight
#pragma once

#include <string>
#include <string_view>

#include "core/base/int.h"

namespace mckpt::impl {

enum class LayerKind : u8;
enum class NormPlace : u8;
class PickleValue;

// The name behind the layer for the wanted place of its norm; `rest` itself if it is not the name of a norm.
std::string moved_norm(std::string_view rest, LayerKind kind, NormPlace to);
// Whether `rest` is the extra state of a norm that is a module of its own, "input_layernorm._extra_state". No
// such module exists if norms are fused.
bool is_state_of_norm(std::string_view rest, LayerKind kind);

// Whether an extra state, such as the history of FP8 scales, contains nothing: None, no bytes, a tensor of no
// items, or a list of such values.
bool is_empty_state(const PickleValue& value);

}  // namespace mckpt::impl
