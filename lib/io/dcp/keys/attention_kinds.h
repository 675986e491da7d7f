// The names under which torch_dist has attention in a model whose layers are of two kinds, each of them
// stacked alone: Gemma 4 of Megatron-Bridge.
//
//   decoder.layers.self_attention_sliding.linear_proj.weight   [sliding layers, ...]
//   decoder.layers.self_attention_global.linear_proj.weight    [layers of all tokens, ...]
#pragma once

#include <string_view>

namespace mckpt::impl {

// The module as it is named at run time, and what torch_dist adds to it.
inline constexpr std::string_view kAttentionModule = ".self_attention";
inline constexpr std::string_view kSlidingKind = "_sliding", kGlobalKind = "_global";

}  // namespace mckpt::impl
