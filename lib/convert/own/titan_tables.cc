// Names of torchtitan 0.3 and of earlier versions, which have some names otherwise ("older").
#include "convert/own/titan_tables.h"

#include <algorithm>
#include <array>
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
constexpr Row kMlp[] = {{"feed_forward.w#.weight", "mlp.#_proj.weight"}};
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
    {"moe.shared_experts.w#.weight", "mlp.shared_experts.#_proj.weight"},
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
    {"moe.router.gate.*", "mlp.router.*"},
    {"moe.routed_experts.inner_experts.mlp1_weight", "mlp.experts.gate_up_proj", Move::kSwap},
    {"moe.routed_experts.inner_experts.mlp1_bias", "mlp.experts.gate_up_proj_bias"},
    {"moe.routed_experts.inner_experts.mlp2_weight", "mlp.experts.down_proj", Move::kSwap},
    {"moe.routed_experts.inner_experts.mlp2_bias", "mlp.experts.down_proj_bias"},
    {"moe.tokens_per_expert_E", "", Move::kNone},
};

// All vision towers of torchtitan have these modules in a layer. `of`: of attn.proj, the two norms and the
// two linear modules.
using TowerQkv = std::array<Row, 3>;
constexpr std::array<Row, 8> tower_layer(const TowerQkv& qkv, const std::array<std::string_view, 5>& of) {
  return {qkv[0],
          qkv[1],
          qkv[2],
          {"attn.proj.*", of[0]},
          {"norm1.*", of[1]},
          {"norm2.*", of[2]},
          {"mlp.linear_fc1.*", of[3]},
          {"mlp.linear_fc2.*", of[4]}};
}
// Queries, keys and values that are one tensor in the folder.
constexpr TowerQkv joined_qkv(std::string_view disk) {
  return {{{"attn.wq.*", disk, Move::kPart, 0, 3},
           {"attn.wk.*", disk, Move::kPart, 1, 3},
           {"attn.wv.*", disk, Move::kPart, 2, 3}}};
}

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
    {"moe.shared_experts.w#.weight", "mlp.shared_expert.#_proj.weight"},
    {"moe.shared_experts.gate.weight", "mlp.shared_expert_gate.weight"},
};
constexpr Row kQwen35Tower[] = {
    {"vision_encoder.patch_embed.weight", "model.visual.patch_embed.proj.weight", Move::kPatches, 0, 5},
    {"vision_encoder.patch_embed.bias", "model.visual.patch_embed.proj.bias"},
    {"vision_encoder.pos_embed", "model.visual.pos_embed.weight"},
    {"vision_encoder.merger.norm.*", "model.visual.merger.norm.*"},
    {"vision_encoder.merger.linear_fc1.*", "model.visual.merger.linear_fc1.*"},
    {"vision_encoder.merger.linear_fc2.*", "model.visual.merger.linear_fc2.*"},
};
constexpr auto kQwen35TowerLayer = tower_layer(
    joined_qkv("attn.qkv.*"), {"attn.proj.*", "norm1.*", "norm2.*", "mlp.linear_fc1.*", "mlp.linear_fc2.*"});

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
    {"vision_encoder.ln_pre.*", "model.vision_tower.ln_pre.*"},
    {"vision_encoder.ln_post.*", "model.vision_tower.ln_post.*"},
    {"vision_adapter.c_fc.weight", "model.vision_adapter.fc1.weight"},
    {"vision_adapter.c_proj.weight", "model.vision_adapter.fc2.weight"},
    {"vision_projection.weight", "model.vision_projection.weight"},
};
constexpr auto kMuseTowerLayer = tower_layer({{{"attn.wq.*", "attn.q_proj.*", Move::kTowerHead},
                                               {"attn.wk.*", "attn.k_proj.*", Move::kTowerHead},
                                               {"attn.wv.*", "attn.v_proj.*"}}},
                                             {"attn.proj.*", "norm1.*", "norm2.*", "mlp.fc1.*", "mlp.fc2.*"});

constexpr Row kKimiTower[] = {
    {"vision_encoder.patch_embed.weight", "vision_tower.patch_embed.proj.weight", Move::kPatches, 0, 4},
    {"vision_encoder.patch_embed.bias", "vision_tower.patch_embed.proj.bias"},
    {"vision_encoder.pos_embed", "vision_tower.patch_embed.pos_emb.weight"},
    {"vision_encoder.final_norm.*", "vision_tower.encoder.final_layernorm.*"},
    {"vision_encoder.projector.pre_norm.*", "mm_projector.pre_norm.*"},
    {"vision_encoder.projector.linear_1.*", "mm_projector.proj.0.*"},
    {"vision_encoder.projector.linear_2.*", "mm_projector.proj.2.*"},
};
constexpr auto kKimiTowerLayer =
    tower_layer(joined_qkv("wqkv.*"), {"wo.*", "norm0.*", "norm1.*", "mlp.fc0.*", "mlp.fc1.*"});

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

struct Word {
  char sign;
  std::string_view titan, disk;
};
constexpr Word kWords[] = {
    {'*', "weight", "weight"}, {'*', "bias", "bias"}, {'#', "1", "gate"},
    {'#', "3", "up"},          {'#', "2", "down"},
};

std::string with_word(std::string_view pattern, char sign, std::string_view word) {
  std::string out(pattern);
  if (std::size_t at = out.find(sign); at != out.npos) out.replace(at, 1, word);
  return out;
}

}  // namespace

FoundRow find_row(std::span<const TitanRow> rows, std::string_view titan) {
  for (const TitanRow& row : rows) {
    if (row.titan == titan) return {&row, std::string(row.disk)};
    for (const Word& word : kWords)
      if (row.titan.find(word.sign) != row.titan.npos && with_word(row.titan, word.sign, word.titan) == titan)
        return {&row, with_word(row.disk, word.sign, word.disk)};
  }
  return {};
}

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
