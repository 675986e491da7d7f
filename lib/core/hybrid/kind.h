// The kinds of layer a HybridStack is built of, one row each: the pattern's symbol and what it means for the
// names in a checkpoint.
#pragma once

#include <span>
#include <string_view>

#include "core/base/int.h"

namespace mckpt {

// In the order in which counts are reported.
enum class LayerKind : u8 { kAttention, kSparseAttention, kGdn, kMamba, kLatentAttention, kMlp, kMoe };
inline constexpr int kLayerKinds = 7;

// Layers of one family own parameters under the same names, so a key alone cannot tell two of them apart.
enum class KeyFamily : u8 { kMixer, kAttention, kMlp };

struct LayerKindInfo {
  LayerKind kind;
  char symbol;
  std::string_view name;   // as JSON has it
  std::string_view words;  // for people
  KeyFamily family;
};

std::span<const LayerKindInfo> all_layer_kinds();
// Null where the byte is no layer symbol.
const LayerKindInfo* find_layer_kind(char symbol);

// "mixer.", "self_attention.", "mlp.": where most parameters of the family lie below their layer.
std::string_view family_prefix(KeyFamily family);

}  // namespace mckpt
