// Rows of models with norms behind the attention and the MLP, which several families share: EXAONE 4 alone
// (post_norm.cc) and behind a vision tower (exaone4_5.cc).
#pragma once

#include "mappings/models/blocks.h"
#include "mappings/models/config_blocks.h"

namespace mckpt::impl {

inline constexpr Row kPostNormProj = {
    "self_attention.linear_proj.weight", "row", {{{"self_attn.o_proj.weight", "hidden attention"}}}};
inline constexpr Row kPostAttentionNorm = {"self_attention.linear_proj.post_layernorm.weight",
                                           "replicate",
                                           {{{"post_attention_layernorm.weight", "hidden"}}}};
inline constexpr Row kPostNormQkv = {"self_attention.linear_qkv.weight",
                                     "qkv",
                                     {{{"self_attn.q_proj.weight", "q hidden"},
                                       {"self_attn.k_proj.weight", "kv hidden"},
                                       {"self_attn.v_proj.weight", "kv hidden"}}}};
inline constexpr Row kPostNormUp = {
    "mlp.linear_fc1.weight",
    "gated_mlp",
    {{{"mlp.gate_proj.weight", "ffn hidden"}, {"mlp.up_proj.weight", "ffn hidden"}}},
    Needs::kAlways,
    KeySplit::kSwiglu};
inline constexpr Row kPostNormDown = {
    "mlp.linear_fc2.weight", "row", {{{"mlp.down_proj.weight", "hidden ffn"}}}};

inline constexpr Row kExaoneAttention[] = {
    kPostNormProj,
    kPostAttentionNorm,
    kPostNormQkv,
    {"self_attention.q_layernorm.weight", "replicate", {{{"self_attn.q_norm.weight", "head_dim"}}}},
    {"self_attention.k_layernorm.weight", "replicate", {{{"self_attn.k_norm.weight", "head_dim"}}}},
};
inline constexpr Row kPostNormDense[] = {
    kPostNormUp,
    kPostNormDown,
    {"mlp.linear_fc2.post_layernorm.weight",
     "replicate",
     {{{"post_feedforward_layernorm.weight", "hidden"}}}},
};

inline constexpr LayerRows kExaoneLayer = {.attention = kExaoneAttention, .dense = kPostNormDense};

namespace config_blocks {

inline constexpr ConfigStep kExaone4Config[] = {
    text({.kv_groups = 32}),
    all_of(kPlainDecoder),
    set(kQkNorm, true),
    part("exaone_layers"),
};
}  // namespace config_blocks
}  // namespace mckpt::impl
