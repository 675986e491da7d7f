// The rows of layers with four norms, as Gemma 2 and 3 have them: before and after the attention, before and
// after the MLP.
#pragma once

#include "mappings/row.h"

namespace mckpt::impl {

inline constexpr Row kFourNormAttentionRows[] = {
    {"self_attention.linear_proj.weight", "row", {{{"self_attn.o_proj.weight", "hidden attention"}}}},
    {"self_attention.linear_proj.post_layernorm.weight",
     "replicate",
     {{{"post_attention_layernorm.weight", "hidden"}}}},
    {"self_attention.linear_qkv.layer_norm_weight", "replicate", {{{"input_layernorm.weight", "hidden"}}}},
    {"self_attention.linear_qkv.weight",
     "qkv",
     {{{"self_attn.q_proj.weight", "q hidden"},
       {"self_attn.k_proj.weight", "kv hidden"},
       {"self_attn.v_proj.weight", "kv hidden"}}}},
    {"self_attention.q_layernorm.weight",
     "replicate",
     {{{"self_attn.q_norm.weight", "head_dim"}}},
     Needs::kQkNorm},
    {"self_attention.k_layernorm.weight",
     "replicate",
     {{{"self_attn.k_norm.weight", "head_dim"}}},
     Needs::kQkNorm},
};
inline constexpr Row kFourNormDenseRows[] = {
    {"mlp.linear_fc1.layer_norm_weight", "replicate", {{{"pre_feedforward_layernorm.weight", "hidden"}}}},
    {"mlp.linear_fc1.weight",
     "gated_mlp",
     {{{"mlp.gate_proj.weight", "ffn hidden"}, {"mlp.up_proj.weight", "ffn hidden"}}},
     Needs::kAlways,
     KeySplit::kSwiglu},
    {"mlp.linear_fc2.weight", "row", {{{"mlp.down_proj.weight", "hidden ffn"}}}},
    {"mlp.linear_fc2.post_layernorm.weight",
     "replicate",
     {{{"post_feedforward_layernorm.weight", "hidden"}}}},
};

}  // namespace mckpt::impl
