// Names of torchtitan 0.3 and of earlier versions, which have some names otherwise ("older").
#include "convert/views/titan_tables.h"

#include <algorithm>
#include <iterator>

namespace mckpt::impl {
namespace {

using Row = TitanRow;
using Move = TitanMove;

constexpr Row kOnce[] = {
    {"tok_embeddings.weight", "{T}embed_tokens.weight"},
    {"norm.weight", "{T}norm.weight"},
    {"lm_head.weight", "{H}lm_head.weight"},
    {"output.weight", "{H}lm_head.weight"},  // before 2026, and Meta's Llama
    {"freqs_cis", "", Move::kNone},
    {"rope.freqs", "", Move::kNone},
    {"rope_cache", "", Move::kNone},
};
constexpr Row kEveryLayer[] = {
    {"attention_norm.weight", "input_layernorm.weight"},
    {"ffn_norm.weight", "post_attention_layernorm.weight"},
    {"attention.wo.weight", "self_attn.o_proj.weight"},
};
constexpr Row kMlp[] = {
    {"feed_forward.w1.weight", "mlp.gate_proj.weight"},
    {"feed_forward.w3.weight", "mlp.up_proj.weight"},
    {"feed_forward.w2.weight", "mlp.down_proj.weight"},
};
constexpr Row kAttention[] = {
    {"attention.qkv_linear.wq.weight", "self_attn.q_proj.weight", Move::kQuery},
    {"attention.qkv_linear.wk.weight", "self_attn.k_proj.weight", Move::kKey},
    {"attention.qkv_linear.wv.weight", "self_attn.v_proj.weight"},
    {"attention.qkv_linear.wqkv.weight", "self_attn.{P}_proj.weight", Move::kQkv},
    {"attention.wq.weight", "self_attn.q_proj.weight", Move::kQuery},  // without qkv_linear: older
    {"attention.wk.weight", "self_attn.k_proj.weight", Move::kKey},
    {"attention.wv.weight", "self_attn.v_proj.weight"},
};
constexpr Row kHeadNorms[] = {
    {"attention.q_norm.weight", "self_attn.q_norm.weight"},
    {"attention.k_norm.weight", "self_attn.k_norm.weight"},
};
constexpr Row kLatentAttention[] = {
    {"attention.wq.weight", "self_attn.q_proj.weight"},  // of models without a low-rank query
    {"attention.wq_a.weight", "self_attn.q_a_proj.weight"},
    {"attention.q_norm.weight", "self_attn.q_a_layernorm.weight"},
    {"attention.wq_b.weight", "self_attn.q_b_proj.weight"},
    {"attention.wkv_a.weight", "self_attn.kv_a_proj_with_mqa.weight"},
    {"attention.kv_norm.weight", "self_attn.kv_a_layernorm.weight"},
    {"attention.wkv_b.weight", "self_attn.kv_b_proj.weight"},
};
constexpr Row kExperts[] = {
    {"moe.router.gate.weight", "mlp.gate.weight"},
    {"moe.routed_experts.inner_experts.w1_EFD", "mlp.experts.{E}.gate_proj.weight", Move::kExperts},
    {"moe.routed_experts.inner_experts.w3_EFD", "mlp.experts.{E}.up_proj.weight", Move::kExperts},
    {"moe.routed_experts.inner_experts.w2_EDF", "mlp.experts.{E}.down_proj.weight", Move::kExperts},
    {"moe.experts.w1_EFD", "mlp.experts.{E}.gate_proj.weight", Move::kExperts},  // older
    {"moe.experts.w3_EFD", "mlp.experts.{E}.up_proj.weight", Move::kExperts},
    {"moe.experts.w2_EDF", "mlp.experts.{E}.down_proj.weight", Move::kExperts},
    {"moe.experts.w1", "mlp.experts.{E}.gate_proj.weight", Move::kExperts},  // older still
    {"moe.experts.w3", "mlp.experts.{E}.up_proj.weight", Move::kExperts},
    {"moe.experts.w2", "mlp.experts.{E}.down_proj.weight", Move::kExperts},
    {"moe.tokens_per_expert", "", Move::kNone},
    {"moe.tokens_per_expert_E", "", Move::kNone},
};
constexpr Row kSharedExperts[] = {
    {"moe.expert_bias_E", "mlp.gate.e_score_correction_bias"},
    {"moe.expert_bias", "mlp.gate.e_score_correction_bias"},  // older
    {"moe.shared_experts.w1.weight", "mlp.shared_experts.gate_proj.weight"},
    {"moe.shared_experts.w3.weight", "mlp.shared_experts.up_proj.weight"},
    {"moe.shared_experts.w2.weight", "mlp.shared_experts.down_proj.weight"},
};
// torchtitan balances the load of experts with a bias of the router that these models do not have.
constexpr Row kOwnBias[] = {
    {"moe.expert_bias_E", "", Move::kLeft}, {"moe.expert_bias", "", Move::kLeft},  // older
};
constexpr Row kMtp[] = {
    {"enorm.weight", "enorm.weight"},
    {"hnorm.weight", "hnorm.weight"},
    {"eh_proj.weight", "eh_proj.weight"},
    {"mtp_norm.weight", "shared_head.norm.weight"},
};

constexpr Row kGptOss[] = {
    {"attention.qkv_linear.wq.bias", "self_attn.q_proj.bias"},
    {"attention.qkv_linear.wk.bias", "self_attn.k_proj.bias"},
    {"attention.qkv_linear.wv.bias", "self_attn.v_proj.bias"},
    {"attention.wo.bias", "self_attn.o_proj.bias"},
    {"attention.sinks", "self_attn.sinks"},
    {"moe.router.gate.weight", "mlp.router.weight"},
    {"moe.router.gate.bias", "mlp.router.bias"},
    {"moe.routed_experts.inner_experts.mlp1_weight", "mlp.experts.gate_up_proj", Move::kSwap},
    {"moe.routed_experts.inner_experts.mlp1_bias", "mlp.experts.gate_up_proj_bias"},
    {"moe.routed_experts.inner_experts.mlp2_weight", "mlp.experts.down_proj", Move::kSwap},
    {"moe.routed_experts.inner_experts.mlp2_bias", "mlp.experts.down_proj_bias"},
    {"moe.tokens_per_expert_E", "", Move::kNone},
};

// Both kinds of layers have their attention under "attn.".
constexpr Row kQwen35[] = {
    {"attention_norm.weight", "input_layernorm.weight"},
    {"ffn_norm.weight", "post_attention_layernorm.weight"},
    {"attn.wq.weight", "self_attn.q_proj.weight"},
    {"attn.wk.weight", "self_attn.k_proj.weight"},
    {"attn.wv.weight", "self_attn.v_proj.weight"},
    {"attn.wo.weight", "self_attn.o_proj.weight"},
    {"attn.q_norm.weight", "self_attn.q_norm.weight"},
    {"attn.k_norm.weight", "self_attn.k_norm.weight"},
    {"attn.in_proj_q.weight", "linear_attn.in_proj_qkv.weight", Move::kPart, 0, 3},
    {"attn.in_proj_k.weight", "linear_attn.in_proj_qkv.weight", Move::kPart, 1, 3},
    {"attn.in_proj_v.weight", "linear_attn.in_proj_qkv.weight", Move::kPart, 2, 3},
    {"attn.conv_q.weight", "linear_attn.conv1d.weight", Move::kPart, 0, 3},
    {"attn.conv_k.weight", "linear_attn.conv1d.weight", Move::kPart, 1, 3},
    {"attn.conv_v.weight", "linear_attn.conv1d.weight", Move::kPart, 2, 3},
    {"attn.in_proj_z.weight", "linear_attn.in_proj_z.weight"},
    {"attn.in_proj_a.weight", "linear_attn.in_proj_a.weight"},
    {"attn.in_proj_b.weight", "linear_attn.in_proj_b.weight"},
    {"attn.A_log", "linear_attn.A_log"},
    {"attn.dt_bias", "linear_attn.dt_bias"},
    {"attn.norm.weight", "linear_attn.norm.weight"},
    {"attn.out_proj.weight", "linear_attn.out_proj.weight"},
};
constexpr Row kQwen35Shared[] = {
    {"moe.shared_experts.w1.weight", "mlp.shared_expert.gate_proj.weight"},
    {"moe.shared_experts.w3.weight", "mlp.shared_expert.up_proj.weight"},
    {"moe.shared_experts.w2.weight", "mlp.shared_expert.down_proj.weight"},
    {"moe.shared_experts.gate.weight", "mlp.shared_expert_gate.weight"},
};
constexpr Row kQwen35Tower[] = {
    {"vision_encoder.patch_embed.weight", "model.visual.patch_embed.proj.weight", Move::kPatches, 0, 5},
    {"vision_encoder.patch_embed.bias", "model.visual.patch_embed.proj.bias"},
    {"vision_encoder.pos_embed", "model.visual.pos_embed.weight"},
    {"vision_encoder.merger.norm.weight", "model.visual.merger.norm.weight"},
    {"vision_encoder.merger.norm.bias", "model.visual.merger.norm.bias"},
    {"vision_encoder.merger.linear_fc1.weight", "model.visual.merger.linear_fc1.weight"},
    {"vision_encoder.merger.linear_fc1.bias", "model.visual.merger.linear_fc1.bias"},
    {"vision_encoder.merger.linear_fc2.weight", "model.visual.merger.linear_fc2.weight"},
    {"vision_encoder.merger.linear_fc2.bias", "model.visual.merger.linear_fc2.bias"},
};
constexpr Row kQwen35TowerLayer[] = {
    {"attn.wq.weight", "attn.qkv.weight", Move::kPart, 0, 3},
    {"attn.wk.weight", "attn.qkv.weight", Move::kPart, 1, 3},
    {"attn.wv.weight", "attn.qkv.weight", Move::kPart, 2, 3},
    {"attn.wq.bias", "attn.qkv.bias", Move::kPart, 0, 3},
    {"attn.wk.bias", "attn.qkv.bias", Move::kPart, 1, 3},
    {"attn.wv.bias", "attn.qkv.bias", Move::kPart, 2, 3},
    {"attn.proj.weight", "attn.proj.weight"},
    {"attn.proj.bias", "attn.proj.bias"},
    {"norm1.weight", "norm1.weight"},
    {"norm1.bias", "norm1.bias"},
    {"norm2.weight", "norm2.weight"},
    {"norm2.bias", "norm2.bias"},
    {"mlp.linear_fc1.weight", "mlp.linear_fc1.weight"},
    {"mlp.linear_fc1.bias", "mlp.linear_fc1.bias"},
    {"mlp.linear_fc2.weight", "mlp.linear_fc2.weight"},
    {"mlp.linear_fc2.bias", "mlp.linear_fc2.bias"},
};

constexpr Row kMuse[] = {
    {"attention.o_gate.weight", "self_attn.gate_proj.weight"},
    {"attention.wo.weight", "self_attn.o_proj.weight"},
    {"attention_norm.weight", "input_layernorm.weight"},
    {"post_attention_norm.weight", "post_attention_layernorm.weight"},
    {"ffn_norm.weight", "pre_feedforward_layernorm.weight"},
    {"post_ffn_norm.weight", "post_feedforward_layernorm.weight"},
};
constexpr Row kMuseOnce[] = {
    {"tok_embeddings.embedding.weight", "{T}embed_tokens.weight"},
    {"vision_encoder.conv1_linear.weight", "model.vision_tower.patch_embedder.patch_embedding.weight"},
    {"vision_encoder.positional_embedding_vlm",
     "model.vision_tower.patch_embedder.position_embedding_table.weight"},
    {"vision_encoder.ln_pre.weight", "model.vision_tower.ln_pre.weight"},
    {"vision_encoder.ln_pre.bias", "model.vision_tower.ln_pre.bias"},
    {"vision_encoder.ln_post.weight", "model.vision_tower.ln_post.weight"},
    {"vision_encoder.ln_post.bias", "model.vision_tower.ln_post.bias"},
    {"vision_adapter.c_fc.weight", "model.vision_adapter.fc1.weight"},
    {"vision_adapter.c_proj.weight", "model.vision_adapter.fc2.weight"},
    {"vision_projection.weight", "model.vision_projection.weight"},
};
constexpr Row kMuseTowerLayer[] = {
    {"attn.wq.weight", "attn.q_proj.weight", Move::kTowerHead},
    {"attn.wk.weight", "attn.k_proj.weight", Move::kTowerHead},
    {"attn.wv.weight", "attn.v_proj.weight"},
    {"attn.wq.bias", "attn.q_proj.bias", Move::kTowerHead},
    {"attn.wk.bias", "attn.k_proj.bias", Move::kTowerHead},
    {"attn.wv.bias", "attn.v_proj.bias"},
    {"attn.proj.weight", "attn.proj.weight"},
    {"attn.proj.bias", "attn.proj.bias"},
    {"norm1.weight", "norm1.weight"},
    {"norm1.bias", "norm1.bias"},
    {"norm2.weight", "norm2.weight"},
    {"norm2.bias", "norm2.bias"},
    {"mlp.linear_fc1.weight", "mlp.fc1.weight"},
    {"mlp.linear_fc1.bias", "mlp.fc1.bias"},
    {"mlp.linear_fc2.weight", "mlp.fc2.weight"},
    {"mlp.linear_fc2.bias", "mlp.fc2.bias"},
};

constexpr Row kKimiTower[] = {
    {"vision_encoder.patch_embed.weight", "vision_tower.patch_embed.proj.weight", Move::kPatches, 0, 4},
    {"vision_encoder.patch_embed.bias", "vision_tower.patch_embed.proj.bias"},
    {"vision_encoder.pos_embed", "vision_tower.patch_embed.pos_emb.weight"},
    {"vision_encoder.final_norm.weight", "vision_tower.encoder.final_layernorm.weight"},
    {"vision_encoder.final_norm.bias", "vision_tower.encoder.final_layernorm.bias"},
    {"vision_encoder.projector.pre_norm.weight", "mm_projector.pre_norm.weight"},
    {"vision_encoder.projector.pre_norm.bias", "mm_projector.pre_norm.bias"},
    {"vision_encoder.projector.linear_1.weight", "mm_projector.proj.0.weight"},
    {"vision_encoder.projector.linear_1.bias", "mm_projector.proj.0.bias"},
    {"vision_encoder.projector.linear_2.weight", "mm_projector.proj.2.weight"},
    {"vision_encoder.projector.linear_2.bias", "mm_projector.proj.2.bias"},
};
constexpr Row kKimiTowerLayer[] = {
    {"attn.wq.weight", "wqkv.weight", Move::kPart, 0, 3},
    {"attn.wk.weight", "wqkv.weight", Move::kPart, 1, 3},
    {"attn.wv.weight", "wqkv.weight", Move::kPart, 2, 3},
    {"attn.wq.bias", "wqkv.bias", Move::kPart, 0, 3},
    {"attn.wk.bias", "wqkv.bias", Move::kPart, 1, 3},
    {"attn.wv.bias", "wqkv.bias", Move::kPart, 2, 3},
    {"attn.proj.weight", "wo.weight"},
    {"attn.proj.bias", "wo.bias"},
    {"norm1.weight", "norm0.weight"},
    {"norm1.bias", "norm0.bias"},
    {"norm2.weight", "norm1.weight"},
    {"norm2.bias", "norm1.bias"},
    {"mlp.linear_fc1.weight", "mlp.fc0.weight"},
    {"mlp.linear_fc1.bias", "mlp.fc0.bias"},
    {"mlp.linear_fc2.weight", "mlp.fc1.weight"},
    {"mlp.linear_fc2.bias", "mlp.fc1.bias"},
};

constexpr std::string_view kModel = "model.", kLanguageModel = "model.language_model.";
constexpr TitanModel kModels[] = {
    {.titan = "llama3",
     .families = {"llama"},
     .text = kModel,
     .once = {kOnce},
     .layer = {kEveryLayer, kMlp, kAttention},
     .pairs = true},
    {.titan = "qwen3",
     .families = {"qwen3"},
     .text = kModel,
     .once = {kOnce},
     .layer = {kEveryLayer, kMlp, kAttention, kHeadNorms}},
    {.titan = "qwen3_moe",
     .families = {"qwen3_moe"},
     .text = kModel,
     .once = {kOnce},
     .layer = {kEveryLayer, kMlp, kAttention, kHeadNorms, kExperts, kOwnBias}},
    {.titan = "deepseek_v3",
     .families = {"deepseek_v3", "kimi_k2"},
     .text = kModel,
     .once = {kOnce},
     .layer = {kEveryLayer, kMlp, kLatentAttention, kExperts, kSharedExperts},
     .mtp = true},
    {.titan = "kimi_k2_7",
     .families = {"kimi_k25"},
     .text = "language_model.model.",
     .head = "language_model.",
     .once = {kOnce, kKimiTower},
     .layer = {kEveryLayer, kMlp, kLatentAttention, kExperts, kSharedExperts},
     .tower_layers = "vision_tower.encoder.blocks.",
     .tower = kKimiTowerLayer,
     .mtp = true},
    {.titan = "gpt_oss",
     .families = {"gpt_oss"},
     .text = kModel,
     .once = {kOnce},
     .layer = {kEveryLayer, kAttention, kGptOss, kOwnBias}},
    {.titan = "qwen3_5",
     .families = {"qwen3_5"},
     .text = kLanguageModel,
     .once = {kOnce, kQwen35Tower},
     .layer = {kQwen35, kMlp},
     .tower_layers = "model.visual.blocks.",
     .tower = kQwen35TowerLayer},
    {.titan = "qwen3_5_moe",
     .families = {"qwen3_5_moe"},
     .text = kLanguageModel,
     .once = {kOnce, kQwen35Tower},
     .layer = {kQwen35, kMlp, kExperts, kQwen35Shared, kOwnBias},
     .tower_layers = "model.visual.blocks.",
     .tower = kQwen35TowerLayer},
    {.titan = "muse_glimmer",
     .families = {"muse_glimmer"},
     .text = kLanguageModel,
     .once = {kMuseOnce, kOnce},
     .layer = {kMuse, kMlp, kAttention},
     .tower_layers = "model.vision_tower.layers.",
     .tower = kMuseTowerLayer,
     .pairs = true},
};

}  // namespace

std::span<const TitanModel> titan_models() { return kModels; }
std::span<const TitanRow> titan_mtp_rows() { return kMtp; }

const TitanModel* titan_model(std::string_view family) {
  if (family.empty()) return nullptr;
  auto model = std::ranges::find_if(kModels, [&](const TitanModel& m) {
    return std::ranges::find(m.families, family) != std::end(m.families);
  });
  return model == std::end(kModels) ? nullptr : &*model;
}

}  // namespace mckpt::impl
