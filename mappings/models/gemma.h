// The rows of layers with four norms, as Gemma 2 and 3 have them: before and after the attention, before and
// after the MLP.
#pragma once

#include "mappings/models/blocks.h"

namespace mckpt::impl {

inline constexpr Row kFourNormAttentionRows[] = {
    kLinearProj,
    {"self_attention.linear_proj.post_layernorm.weight",
     "replicate",
     {{{"post_attention_layernorm.weight", "hidden"}}}},
    kFusedInputNorm,
    kQkv,
    kQueryNorm,
    kKeyNorm,
};
inline constexpr Row kFourNormDenseRows[] = {
    {"mlp.linear_fc1.layer_norm_weight", "replicate", {{{"pre_feedforward_layernorm.weight", "hidden"}}}},
    kGatedFc1,
    kFc2,
    {"mlp.linear_fc2.post_layernorm.weight",
     "replicate",
     {{{"post_feedforward_layernorm.weight", "hidden"}}}},
};

}  // namespace mckpt::impl
