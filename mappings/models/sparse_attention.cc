// GLM-5 and DeepSeek-V3.2: DeepSeek-V3 with sparse attention. An indexer in front of the attention chooses
// the keys that a query sees; in GLM-5.2 some layers have none and use the choice of the layer before them.
//
//   model.layers.3.self_attn.indexer.wq_b.weight   <->   decoder.layers.3.self_attention.core_attention.indexer.linear_wq_b.weight
//
// Peculiar to these families:
// - The norms of the low-rank parts are modules of their own, q_layernorm and kv_layernorm, with the indexer
// or without.
// - The indexer is whole on every tensor-parallel rank, and its k_norm is a LayerNorm with a bias.
// - Megatron-Bridge builds GLM-5 without its prediction layer, and knows no DeepSeek-V3.2; both have their
// tensors here.
#include "mappings/models/config_blocks.h"
#include "mappings/models/deepseek.h"
#include "mappings/models/families.h"

namespace mckpt::impl {
namespace {

using namespace config_blocks;

constexpr Row kQueryNorm = {"self_attention.q_layernorm.weight",
                            "replicate",
                            {{{"self_attn.q_a_layernorm.weight", "q_lora"}}},
                            Needs::kQueryLora};
constexpr Row kKeyNorm = {
    "self_attention.kv_layernorm.weight", "replicate", {{{"self_attn.kv_a_layernorm.weight", "kv_lora"}}}};

constexpr Row kShared[] = {
    kInputNormRow, kLatentProjRow, kPlainQueryRow, kQueryDownRow, kQueryUpRow,
    kKeyDownRow,   kKeyUpRow,      kQueryNorm,     kKeyNorm,
};
constexpr Row kIndexed[] = {
    kInputNormRow,
    {"self_attention.core_attention.indexer.linear_wq_b.weight",
     "replicate",
     {{{"self_attn.indexer.wq_b.weight", "indexer_q q_lora"}}}},
    {"self_attention.core_attention.indexer.linear_wk.weight",
     "replicate",
     {{{"self_attn.indexer.wk.weight", "indexer_dim hidden"}}}},
    {"self_attention.core_attention.indexer.k_norm.weight",
     "replicate",
     {{{"self_attn.indexer.k_norm.weight", "indexer_dim"}}}},
    {"self_attention.core_attention.indexer.k_norm.bias",
     "replicate",
     {{{"self_attn.indexer.k_norm.bias", "indexer_dim"}}}},
    {"self_attention.core_attention.indexer.linear_weights_proj.weight",
     "replicate",
     {{{"self_attn.indexer.weights_proj.weight", "indexer_heads hidden"}}}},
    kLatentProjRow,
    kPlainQueryRow,
    kQueryDownRow,
    kQueryUpRow,
    kKeyDownRow,
    kKeyUpRow,
    kQueryNorm,
    kKeyNorm,
};

constexpr LayerRows kLayer = {
    .latent_attention = kShared, .indexed_attention = kIndexed, .dense = kDenseRows, .moe = kDeepseekMoeRows};
constexpr std::array<Section, 8> kSections = numbered_mtp_sections(kLayer);

constexpr std::string_view kGlm[] = {"glm_moe_dsa"};
constexpr std::string_view kDeepseek[] = {"deepseek_v32"};
constexpr Needs kForms[] = {Needs::kExpertsApart, Needs::kExpertsFused};
constexpr Needs kHas[] = {Needs::kQueryLora, Needs::kNoQueryLora, Needs::kExpertBias, Needs::kSharedExpert};

// Behind the rank of queries.
constexpr ConfigStep kIndexedDecoder[] = {
    all_of(kLatentDecoder),
    layers({Mixer::kIndexedAttention, Ffn::kDense}),
    refused("mlp_bias"),
    part("low_rank_queries"),
    size(member<&ModelConfig::indexer, &IndexerConfig::heads>, "index_n_heads"),
    size(member<&ModelConfig::indexer, &IndexerConfig::head_dim>, "index_head_dim"),
    dense_layers(3),
    layer_experts(),
    mtp(16, {Mixer::kIndexedAttention, Ffn::kMoe}),
};
constexpr ConfigStep kDeepseekConfig[] = {query_rank(1536), all_of(kIndexedDecoder)};
constexpr ConfigStep kGlmConfig[] = {
    query_rank(2048),
    all_of(kIndexedDecoder),
    part("indexer_types"),
};

constexpr Family kFamilies[] = {
    {.name = "glm_moe_dsa",
     .model_types = kGlm,
     .architecture = "GlmMoeDsaForCausalLM",
     .summary = "GLM-5 to 5.3",
     .sections = kSections,
     .unread = kNumberedMtpUnread,
     .expert_forms = kForms,
     .conditions = kHas,
     .vocab_divisor = 1280,
     .config = kGlmConfig,
     .facts = {"zai-org/GLM-5, zai-org/GLM-5.1, zai-org/GLM-5.2, zai-org/GLM-5.3", "fp8",
               "1, tp2, tp2 cp2, tp2 ep2 etp2, tp4"}},
    {.name = "deepseek_v32",
     .model_types = kDeepseek,
     .architecture = "DeepseekV32ForCausalLM",
     .summary = "DeepSeek-V3.2",
     .sections = kSections,
     .unread = kNumberedMtpUnread,
     .expert_forms = kForms,
     .conditions = kHas,
     .vocab_divisor = 1280,
     .config = kDeepseekConfig,
     .facts = {"deepseek-ai/DeepSeek-V3.2-Exp, deepseek-ai/DeepSeek-V3.2", "fp8 blocks", ""}},
};

}  // namespace

std::span<const Family> sparse_attention_families() { return kFamilies; }

}  // namespace mckpt::impl
