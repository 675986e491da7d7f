// The rows of gated delta nets, the linear attention of Qwen3-Next and Qwen3.5. Qwen3-Next stores the input
// projection in two tensors grouped by key head, Qwen3.5 in four flat ones; all other rows are shared:
//
//   in_proj_qkvz, in_proj_ba                             ->  self_attention.in_proj   rule gdn_in_proj_grouped
//   in_proj_qkv, in_proj_z, in_proj_b, in_proj_a         ->  self_attention.in_proj   rule gdn_in_proj
#pragma once

#include "mappings/row.h"

namespace mckpt::impl {

inline constexpr Row kGdnTimeStep = {
    "self_attention.dt_bias", "column", {{{"linear_attn.dt_bias", "gdn_heads"}}}};
inline constexpr Row kGdnDecay = {"self_attention.A_log", "column", {{{"linear_attn.A_log", "gdn_heads"}}}};
inline constexpr Row kGdnNorm = {
    "self_attention.in_proj.layer_norm_weight", "replicate", {{{"input_layernorm.weight", "hidden"}}}};
inline constexpr Row kGdnConv = {.megatron = "self_attention.conv1d.weight",
                                 .rule = "gdn_conv",
                                 .sources = {{{"linear_attn.conv1d.weight", "gdn_qkv 1 gdn_kernel"}}},
                                 .split = KeySplit::kGdnConv,
                                 .gathered_with = kOwnLayer};
// Hugging Face stores this norm around one, Megatron stores it like all others around zero.
inline constexpr Row kGdnOutNorm = {
    "self_attention.out_norm.weight", "zero_centered_norm", {{{"linear_attn.norm.weight", "gdn_value_dim"}}}};
inline constexpr Row kGdnOut = {
    "self_attention.out_proj.weight", "row", {{{"linear_attn.out_proj.weight", "hidden gdn_v"}}}};

// Qwen3-Next, in the order in which Megatron registers the parameters.
inline constexpr Row kGroupedGdnRows[] = {
    kGdnTimeStep,
    kGdnDecay,
    kGdnNorm,
    {"self_attention.in_proj.weight",
     "gdn_in_proj_grouped",
     {{{"linear_attn.in_proj_qkvz.weight", "gdn_qkvz hidden"},
       {"linear_attn.in_proj_ba.weight", "2*gdn_heads hidden"}}},
     Needs::kAlways,
     KeySplit::kGdnInProj},
    kGdnConv,
    kGdnOutNorm,
    kGdnOut,
};

// Qwen3.5, in the same order.
inline constexpr Row kFlatGdnRows[] = {
    kGdnTimeStep,
    kGdnDecay,
    kGdnNorm,
    {"self_attention.in_proj.weight",
     "gdn_in_proj",
     {{{"linear_attn.in_proj_qkv.weight", "gdn_qkv hidden"},
       {"linear_attn.in_proj_z.weight", "gdn_v hidden"},
       {"linear_attn.in_proj_b.weight", "gdn_heads hidden"},
       {"linear_attn.in_proj_a.weight", "gdn_heads hidden"}}},
     Needs::kAlways,
     KeySplit::kGdnInProj},
    kGdnConv,
    kGdnOutNorm,
    kGdnOut,
};

}  // namespace mckpt::impl
