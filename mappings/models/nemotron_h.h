// The rows of Nemotron-H, for the model alone (nemotron_h.cc) and behind towers (nemotron_vl.cc).
#pragma once

#include "mappings/models/blocks.h"
#include "mappings/models/config_blocks.h"

namespace mckpt::impl {

inline constexpr Row kHybridMambaRows[] = {
    {.megatron = "mixer.conv1d_weight",
     .rule = "mamba_conv",
     .sources = {{{"mixer.conv1d.weight", "mamba_conv 1 mamba_kernel"}}},
     .gathered_with = kOwnLayer},
    {.megatron = "mixer.conv1d_bias",
     .rule = "mamba_conv",
     .sources = {{{"mixer.conv1d.bias", "mamba_conv"}}},
     .gathered_with = kOwnLayer},
    {"mixer.dt_bias", "column", {{{"mixer.dt_bias", "mamba_heads"}}}},
    {"mixer.A_log", "column", {{{"mixer.A_log", "mamba_heads"}}}},
    {"mixer.D", "column", {{{"mixer.D", "mamba_heads"}}}},
    {"mixer.in_proj.layer_norm_weight", "replicate", {{{"norm.weight", "hidden"}}}},
    {"mixer.in_proj.weight", "mamba_in_proj", {{{"mixer.in_proj.weight", "mamba_in hidden"}}}},
    {"mixer.norm.weight", "column", {{{"mixer.norm.weight", "mamba_inner"}}}},
    {"mixer.out_proj.weight", "row", {{{"mixer.out_proj.weight", "hidden mamba_inner"}}}},
};

inline constexpr Row kHybridAttentionRows[] = {
    {"self_attention.linear_proj.weight", "row", {{{"mixer.o_proj.weight", "hidden attention"}}}},
    {"self_attention.linear_qkv.layer_norm_weight", "replicate", {{{"norm.weight", "hidden"}}}},
    {"self_attention.linear_qkv.weight",
     "qkv",
     {{{"mixer.q_proj.weight", "q hidden"},
       {"mixer.k_proj.weight", "kv hidden"},
       {"mixer.v_proj.weight", "kv hidden"}}}},
};

inline constexpr Row kHybridMlpRows[] = {
    {"mlp.linear_fc1.layer_norm_weight", "replicate", {{{"norm.weight", "hidden"}}}},
    {"mlp.linear_fc1.weight", "column", {{{"mixer.up_proj.weight", "ffn hidden"}}}},
    {"mlp.linear_fc2.weight", "row", {{{"mixer.down_proj.weight", "hidden ffn"}}}},
};

inline constexpr Row kHybridMoeRows[] = {
    {"pre_mlp_layernorm.weight", "replicate", {{{"norm.weight", "hidden"}}}},
    {"mlp.router.weight", "replicate", {{{"mixer.gate.weight", "experts hidden"}}}},
    {.megatron = "mlp.router.expert_bias",
     .rule = "replicate",
     .sources = {{{"mixer.gate.e_score_correction_bias", "experts"}}},
     .needs = Needs::kExpertBias,
     .buffer = true},
    {"mlp.fc1_latent_proj.weight",
     "replicate",
     {{{"mixer.fc1_latent_proj.weight", "expert_hidden hidden"}}},
     Needs::kLatent},
    {"mlp.fc2_latent_proj.weight",
     "replicate",
     {{{"mixer.fc2_latent_proj.weight", "hidden expert_hidden"}}},
     Needs::kLatent},
    {"mlp.experts.linear_fc1.weight{E}",
     "column",
     {{{"mixer.experts.{E}.up_proj.weight", "expert_ffn expert_hidden"}}},
     Needs::kExpertsApart},
    {"mlp.experts.linear_fc1.weight{E}",
     "expert_column",
     {{{"mixer.experts.up_proj", "experts expert_ffn expert_hidden"}}},
     Needs::kExpertsFused},
    {"mlp.experts.linear_fc2.weight{E}",
     "row",
     {{{"mixer.experts.{E}.down_proj.weight", "expert_hidden expert_ffn"}}},
     Needs::kExpertsApart},
    {"mlp.experts.linear_fc2.weight{E}",
     "expert_row",
     {{{"mixer.experts.down_proj", "experts expert_hidden expert_ffn"}}},
     Needs::kExpertsFused},
    {"mlp.shared_experts.linear_fc1.weight",
     "column",
     {{{"mixer.shared_experts.up_proj.weight", "shared_ffn hidden"}}},
     Needs::kSharedExpert},
    {"mlp.shared_experts.linear_fc2.weight",
     "row",
     {{{"mixer.shared_experts.down_proj.weight", "hidden shared_ffn"}}},
     Needs::kSharedExpert},
};

inline constexpr LayerRows kHybridLayer = {.attention = kHybridAttentionRows,
                                           .mamba = kHybridMambaRows,
                                           .dense = kHybridMlpRows,
                                           .moe = kHybridMoeRows};

// Released files have "embeddings"; some versions of transformers write "embedding".
inline constexpr Row kHybridEmbeddingRows[] = {
    {.megatron = "embedding.word_embeddings.weight",
     .rule = "vocab",
     .sources = {{{"embeddings.weight", "vocab hidden"}}},
     .also = "embedding.weight"},
};
inline constexpr Row kHybridTiedOutputRows[] = {
    {.megatron = "output_layer.weight",
     .rule = "vocab",
     .sources = {{{"embeddings.weight", "vocab hidden"}}},
     .needs = Needs::kTied,
     .also = "embedding.weight"},
};
inline constexpr Row kHybridFinalNormRows[] = {
    {"decoder.final_norm.weight", "replicate", {{{"norm_f.weight", "hidden"}}}},
};
namespace config_blocks {

inline constexpr ConfigStep kHybridConfig[] = {
    text({.kv_groups = 8, .head_dim = 128}),
    refused("attention_bias"),
    refused("mlp_bias"),
    refused("use_bias"),
    set(kGatedMlp, false),
    set(kSwiglu, false),
    part("hybrid_layers"),
};

}  // namespace config_blocks
}  // namespace mckpt::impl
