// Models with the attention of Llama or Qwen, with a mixture of experts; they differ in the names of the
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
// - OLMoE and MiniMax norm all queries of a token at once, and all keys. Every cell of OLMoE has the whole
// norms; norms of
//   MiniMax are split like the heads, and a group's part is on several cells where there are fewer groups than cells.
// - transformers 5 may save all experts of a layer as one tensor, below `mlp`.
#include "mappings/models/config_blocks.h"
#include "mappings/models/deepseek.h"
#include "mappings/models/families.h"

namespace mckpt::impl {
namespace {

using namespace config_blocks;

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

// Mixtral, OLMoE and MiniMax have no dense layers, so intermediate_size is the width of an expert.
constexpr ConfigStep kOlmoeConfig[] = {
    text(),
    refused("attention_bias"),
    activation(),
    experts("num_experts", "num_local_experts"),
    size(kMoeFfn, "intermediate_size"),
    layers(kAttentionAndExperts),
    layer_experts(),
    set(kQkNorm, true),
    part("as_many_groups"),
};
constexpr ConfigStep kMixtralConfig[] = {
    text({.kv_groups = 8, .null_groups_are_heads = true}),
    refused("attention_bias"),
    activation(),
    experts("num_local_experts", "num_experts"),
    size(kMoeFfn, "intermediate_size"),
    layers(kAttentionAndExperts),
    layer_experts(),
};
constexpr ConfigStep kMinimaxConfig[] = {
    text({.kv_groups = 8, .head_dim = 128}),
    refused("attention_bias"),
    activation(),
    experts("num_local_experts", "num_experts"),
    size(kMoeFfn, "intermediate_size"),
    layers(kAttentionAndExperts),
    layer_experts(),
    set(kQkNorm, true),
    set(kExpertBias, true),
};
// Norms of q and k, dense layers first, and experts with a bias beside shared ones, behind text().
constexpr ConfigStep kBiasedExperts[] = {
    all_of(kDenseFfn),
    refused("attention_bias"),
    refused("mlp_bias"),
    set(kQkNorm, true),
    experts("num_experts", "num_local_experts"),
    size(kMoeFfn, "moe_intermediate_size"),
    shared_experts("num_shared_experts", 1),
    set(kExpertBias, true),
    layers(),
    dense_layers(1),
    layer_experts(),
};
constexpr ConfigStep kHunyuanConfig[] = {
    text({.kv_groups = 8, .head_dim = 128}),
    all_of(kBiasedExperts),
};
constexpr ConfigStep kExaoneConfig[] = {
    text({.kv_groups = 32}),
    all_of(kBiasedExperts),
    part("exaone_layers"),
};
constexpr ConfigStep kErnieConfig[] = {
    text({.kv_groups = 4}),
    all_of(kDenseFfn),
    refused("use_bias"),
    flag(kTiedHead, "tie_word_embeddings", true),
    experts("moe_num_experts", "num_local_experts", "num_experts"),
    size(kMoeFfn, "moe_intermediate_size"),
    shared_experts("moe_num_shared_experts", 2),
    set(kExpertBias, true),
    part("interval_layers"),
    layer_experts(),
};
constexpr ConfigStep kQwen2MoeConfig[] = {
    text({.kv_groups = 16}),
    flag(kQkvBias, "qkv_bias", true),
    layers(),
    shared_width(5632),
    part("shared_gate"),
    all_of(kQwenExperts),
};

constexpr Family kFamilies[] = {
    {.name = "qwen2_moe",
     .model_types = kQwen2Types,
     .architecture = "Qwen2MoeForCausalLM",
     .summary = "Qwen1.5 and Qwen2 with experts",
     .sections = kQwenSections,
     .unread = kUnread,
     .expert_forms = kForms,
     .conditions = kQwen2Has,
     .config = kQwen2MoeConfig,
     .facts = {"Qwen/Qwen1.5-MoE-A2.7B, Qwen/Qwen2-57B-A14B", "gptq", ""}},
    {.name = "olmoe",
     .model_types = kOlmoeTypes,
     .architecture = "OlmoeForCausalLM",
     .summary = "OLMoE",
     .sections = kOlmoeSections,
     .unread = kUnread,
     .expert_forms = kForms,
     .config = kOlmoeConfig,
     .facts = {"allenai/OLMoE-1B-7B-0924", "", "1, ep2, tp2, tp2 cp2, tp2 ep2 etp2, tp4"}},
    {.name = "mixtral",
     .model_types = kMixtralTypes,
     .architecture = "MixtralForCausalLM",
     .summary = "Mixtral",
     .sections = kMixtralSections,
     .unread = kUnread,
     .expert_forms = kForms,
     .config = kMixtralConfig,
     .facts = {"mistralai/Mixtral-8x7B-v0.1, mistralai/Mixtral-8x22B-v0.1", "awq, gptq", ""}},
    {.name = "minimax_m2",
     .model_types = kMinimaxTypes,
     .architecture = "MiniMaxM2ForCausalLM",
     .summary = "MiniMax-M2, M2.5 and M2.7",
     .sections = kMinimaxSections,
     .unread = kUnread,
     .expert_forms = kForms,
     .config = kMinimaxConfig,
     .facts = {"MiniMaxAI/MiniMax-M2, MiniMaxAI/MiniMax-M2.5", "fp8 blocks",
               "1, ep2, ep8, tp2 cp2 ep2, tp2 ep4, tp4 ep2, tp8"}},
    {.name = "hy_v3",
     .model_types = kHunyuanTypes,
     .architecture = "HYV3ForCausalLM",
     .summary = "Hunyuan-V3",
     .sections = kHunyuanSections,
     .unread = kUnread,
     .expert_forms = kForms,
     .conditions = kQkNormAndShared,
     .config = kHunyuanConfig,
     .facts = {"tencent/Hy3-preview, without its MTP layer", "fp8", "1, tp2, tp2 cp2, tp2 ep2 etp2, tp4"}},
    {.name = "exaone_moe",
     .model_types = kExaoneTypes,
     .architecture = "ExaoneMoeForCausalLM",
     .summary = "K-EXAONE",
     .sections = kExaoneSections,
     .unread = kUnread,
     .expert_forms = kForms,
     .conditions = kQkNormAndShared,
     .config = kExaoneConfig,
     .facts = {"LGAI-EXAONE/K-EXAONE-236B-A23B", "fp8", "1, ep8, tp2 cp2 ep2, tp2 ep4, tp4 ep2"}},
    {.name = "ernie4_5_moe",
     .model_types = kErnieTypes,
     .architecture = "Ernie4_5_MoeForCausalLM",
     .summary = "ERNIE 4.5 with experts",
     .sections = kErnieSections,
     .unread = kUnread,
     .expert_forms = kForms,
     .conditions = kShared,
     .config = kErnieConfig,
     .facts = {"baidu/ERNIE-4.5-21B-A3B-PT, baidu/ERNIE-4.5-300B-A47B-PT", "fp8",
               "1, ep8, tp2 cp2 ep2, tp2 ep4, tp4 ep2"}},
};

}  // namespace

std::span<const Family> expert_families() { return kFamilies; }

}  // namespace mckpt::impl
