// Models whose attention is that of Llama or Qwen, with a mixture of experts; they differ in the names of the
// router, its bias and the experts:
//
//   qwen2_moe      mlp.gate              -                                        mlp.experts.3.gate_proj, up_proj, down_proj
//   olmoe          mlp.gate              -                                        the same
//   mixtral        block_sparse_moe.gate -                                        block_sparse_moe.experts.3.w1, w3, w2
//   minimax_m2     block_sparse_moe.gate block_sparse_moe.e_score_correction_bias the same
//   hy_v3          mlp.router.gate       mlp.expert_bias                          as qwen2_moe, shared: mlp.shared_mlp
//   exaone_moe     mlp.gate              mlp.e_score_correction_bias              as qwen2_moe, shared: mlp.shared_experts
//   ernie4_5_moe   mlp.gate              mlp.moe_statics.e_score_correction_bias  the same; the bias is [1, experts]
//
// - OLMoE and MiniMax norm all queries of a token at once, and all keys. Every cell of OLMoE has the whole norms; those of
//   MiniMax are split like the heads, and a group's part is on several cells where there are fewer groups than cells.
// - transformers 5 may save all experts of a layer as one tensor, below `mlp`.
#include "mappings/models/deepseek.h"
#include "mappings/models/families.h"

namespace mckpt::impl {
namespace {

constexpr Row kWholeNormAttention[] = {
    kAttentionRows[1],  // linear_proj.weight
    kAttentionRows[3],  // linear_qkv.layer_norm_weight
    kAttentionRows[4],  // linear_qkv.weight
    {"self_attention.q_layernorm.weight", "replicate", {{{"self_attn.q_norm.weight", "q"}}}},
    {"self_attention.k_layernorm.weight", "replicate", {{{"self_attn.k_norm.weight", "kv"}}}},
};
constexpr Row kSplitNormAttention[] = {
    kAttentionRows[1],
    kAttentionRows[3],
    kAttentionRows[4],
    {"self_attention.q_layernorm.weight", "column", {{{"self_attn.q_norm.weight", "q"}}}},
    {"self_attention.k_layernorm.weight", "column_by_group", {{{"self_attn.k_norm.weight", "kv"}}}},
};

constexpr Row kPlainMoe[] = {
    kMoeNormRow, kRouterRow, kApartUpRow, kFusedUpRow, kApartDownRow, kFusedDownRow,
};

constexpr Row kSparseRouter = {.megatron = "mlp.router.weight",
                               .rule = "replicate",
                               .sources = {{{"block_sparse_moe.gate.weight", "experts hidden"}}},
                               .also = "mlp.gate.weight"};
constexpr Row kSparseUp = {"mlp.experts.linear_fc1.weight{E}",
                           "gated_mlp",
                           {{{"block_sparse_moe.experts.{E}.w1.weight", "expert_ffn hidden"},
                             {"block_sparse_moe.experts.{E}.w3.weight", "expert_ffn hidden"}}},
                           Needs::kExpertsApart,
                           KeySplit::kSwiglu};
constexpr Row kSparseDown = {"mlp.experts.linear_fc2.weight{E}",
                             "row",
                             {{{"block_sparse_moe.experts.{E}.w2.weight", "hidden expert_ffn"}}},
                             Needs::kExpertsApart};
constexpr Row kMixtralMoe[] = {
    kMoeNormRow, kSparseRouter, kSparseUp, kFusedUpRow, kSparseDown, kFusedDownRow,
};
constexpr Row kMinimaxMoe[] = {
    kMoeNormRow,
    kSparseRouter,
    {.megatron = "mlp.router.expert_bias",
     .rule = "replicate",
     .sources = {{{"block_sparse_moe.e_score_correction_bias", "experts"}}},
     .buffer = true,
     .also = "mlp.gate.e_score_correction_bias"},
    kSparseUp,
    kFusedUpRow,
    kSparseDown,
    kFusedDownRow,
};

constexpr Row kHunyuanMoe[] = {
    kMoeNormRow,
    {.megatron = "mlp.router.weight",
     .rule = "replicate",
     .sources = {{{"mlp.router.gate.weight", "experts hidden"}}},
     .also = "mlp.gate.weight"},
    {.megatron = "mlp.router.expert_bias",
     .rule = "replicate",
     .sources = {{{"mlp.expert_bias", "experts"}}},
     .buffer = true,
     .also = "mlp.e_score_correction_bias"},
    kApartUpRow,
    kFusedUpRow,
    kApartDownRow,
    kFusedDownRow,
    {"mlp.shared_experts.linear_fc1.weight",
     "gated_mlp",
     {{{"mlp.shared_mlp.gate_proj.weight", "shared_ffn hidden"},
       {"mlp.shared_mlp.up_proj.weight", "shared_ffn hidden"}}},
     Needs::kSharedExpert,
     KeySplit::kSwiglu},
    {"mlp.shared_experts.linear_fc2.weight",
     "row",
     {{{"mlp.shared_mlp.down_proj.weight", "hidden shared_ffn"}}},
     Needs::kSharedExpert},
};

constexpr Row kExaoneMoe[] = {
    kMoeNormRow,
    kRouterRow,
    {.megatron = "mlp.router.expert_bias",
     .rule = "replicate",
     .sources = {{{"mlp.e_score_correction_bias", "experts"}}},
     .buffer = true,
     .also = "mlp.gate.e_score_correction_bias"},
    kApartUpRow,
    kFusedUpRow,
    kApartDownRow,
    kFusedDownRow,
    kSharedUpRow,
    kSharedDownRow,
};

constexpr Row kErnieMoe[] = {
    kMoeNormRow,
    kRouterRow,
    {.megatron = "mlp.router.expert_bias",
     .rule = "replicate_row",
     .sources = {{{"mlp.moe_statics.e_score_correction_bias", "1 experts"}}},
     .buffer = true},
    kApartUpRow,
    kFusedUpRow,
    kApartDownRow,
    kFusedDownRow,
    kSharedUpRow,
    kSharedDownRow,
};

constexpr LayerRows kQwen = {.attention = kAttentionRows, .dense = kDenseRows, .moe = kQwenMoeRows};
constexpr LayerRows kOlmoe = {.attention = kWholeNormAttention, .moe = kPlainMoe};
constexpr LayerRows kMixtral = {.attention = kAttentionRows, .moe = kMixtralMoe};
constexpr LayerRows kMinimax = {.attention = kSplitNormAttention, .moe = kMinimaxMoe};
constexpr LayerRows kHunyuan = {.attention = kAttentionRows, .dense = kDenseRows, .moe = kHunyuanMoe};
constexpr LayerRows kExaone = {.attention = kAttentionRows, .dense = kDenseRows, .moe = kExaoneMoe};
constexpr LayerRows kErnie = {.attention = kAttentionRows, .dense = kDenseRows, .moe = kErnieMoe};

constexpr std::array<Section, 5> sections(const LayerRows& layer) {
  return {{{Scope::kOnce, "", "model.", kEmbeddingRows},
           {Scope::kLayers, "decoder.layers.{L}.", "model.layers.{L}.", {}, &layer},
           {Scope::kOnce, "", "model.", kFinalNormRows, nullptr, Stage::kFinalNorm},
           {Scope::kOnce, "", "", kOutputRows, nullptr, Stage::kOutput},
           {Scope::kOnce, "", "model.", kTiedOutputRows, nullptr, Stage::kTiedOutput}}};
}
constexpr std::array<Section, 5> kQwenSections = sections(kQwen), kOlmoeSections = sections(kOlmoe),
                                 kMixtralSections = sections(kMixtral), kMinimaxSections = sections(kMinimax),
                                 kHunyuanSections = sections(kHunyuan), kExaoneSections = sections(kExaone),
                                 kErnieSections = sections(kErnie);

constexpr Unread kUnread[] = {
    {"lm_head.weight", "model.embed_tokens.weight", kTiedCopy, Needs::kTied},
    {"model.layers.{L}.self_attn.rotary_emb.inv_freq", "", kRotary},
};

constexpr std::string_view kQwen2Types[] = {"qwen2_moe"};
constexpr std::string_view kOlmoeTypes[] = {"olmoe"};
constexpr std::string_view kMixtralTypes[] = {"mixtral"};
constexpr std::string_view kMinimaxTypes[] = {"minimax_m2"};
constexpr std::string_view kHunyuanTypes[] = {"hy_v3"};
constexpr std::string_view kExaoneTypes[] = {"exaone_moe"};
constexpr std::string_view kErnieTypes[] = {"ernie4_5_moe"};

constexpr Needs kForms[] = {Needs::kExpertsApart, Needs::kExpertsFused};
constexpr Needs kQwen2Has[] = {Needs::kQkvBias, Needs::kSharedExpert, Needs::kSharedGate};
constexpr Needs kQkNormAndShared[] = {Needs::kQkNorm, Needs::kSharedExpert};
constexpr Needs kShared[] = {Needs::kSharedExpert};

constexpr Family kFamilies[] = {
    {"qwen2_moe", kQwen2Types, "Qwen2MoeForCausalLM", "Qwen1.5 and Qwen2 with experts", kQwenSections,
     kUnread, kForms, kQwen2Has},
    {"olmoe", kOlmoeTypes, "OlmoeForCausalLM", "OLMoE", kOlmoeSections, kUnread, kForms},
    {"mixtral", kMixtralTypes, "MixtralForCausalLM", "Mixtral", kMixtralSections, kUnread, kForms},
    {"minimax_m2", kMinimaxTypes, "MiniMaxM2ForCausalLM", "MiniMax-M2, M2.5 and M2.7", kMinimaxSections,
     kUnread, kForms},
    {"hy_v3", kHunyuanTypes, "HYV3ForCausalLM", "Hunyuan-V3", kHunyuanSections, kUnread, kForms,
     kQkNormAndShared},
    {"exaone_moe", kExaoneTypes, "ExaoneMoeForCausalLM", "K-EXAONE", kExaoneSections, kUnread, kForms,
     kQkNormAndShared},
    {"ernie4_5_moe", kErnieTypes, "Ernie4_5_MoeForCausalLM", "ERNIE 4.5 with experts", kErnieSections,
     kUnread, kForms, kShared},
};

}  // namespace

std::span<const Family> expert_families() { return kFamilies; }

}  // namespace mckpt::impl
