// The kinds of layers of a HybridStack, one row each: the symbol in the pattern, and the family of names in a
// checkpoint.
#pragma once

#include <span>
#include <string_view>

#include "core/base/int.h"

namespace mckpt::impl {

// In the order in which counts are reported.
enum class LayerKind : u8 { kAttention, kSparseAttention, kGdn, kMamba, kLatentAttention, kMlp, kMoe };
inline constexpr int kLayerKinds = 7;

// Layers of one family have parameters of the same names, so two of them cannot be told apart by a key.
enum class KeyFamily : u8 { kMixer, kAttention, kMlp };

// A row of the table; it lives as long as the program.
struct LayerKindInfo {
  LayerKind kind;
  char symbol;
  std::string_view name;   // as JSON has it
  std::string_view words;  // for people
  KeyFamily family;
};

std::span<const LayerKindInfo> all_layer_kinds();
// Null if the byte is not a layer symbol.
const LayerKindInfo* find_layer_kind(char symbol);

// "mixer.", "self_attention.", "mlp.": the module that has most parameters of the family.
std::string_view family_prefix(KeyFamily family);

}  // namespace mckpt::impl
