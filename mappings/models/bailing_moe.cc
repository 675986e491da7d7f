// Ling 2.0 (bailing_moe_v2) and Sarvam: attention whose queries, keys and values are one tensor of the file,
// dense layers first, then experts with a shared one and a bias of the router.
//
//   attention.query_key_value   all queries above all keys above all values     linear_qkv, by group
//   attention.dense                                                              linear_proj
//
// Peculiar to this family: names of GPT-NeoX's kind (word_embeddings, query_layernorm, dense); MTP layers,
// numbered behind the decoder's layers, end in a norm of their own.
#include "mappings/models/config_blocks.h"
#include "mappings/models/deepseek.h"
#include "mappings/models/families.h"

namespace mckpt::impl {
namespace {

using namespace config_blocks;

constexpr Row kAttention[] = {
    {"self_attention.linear_proj.weight", "row", {{{"attention.dense.weight", "hidden attention"}}}},
    kFusedInputNorm,
    {"self_attention.linear_qkv.weight",
     "qkv_joined",
     {{{"attention.query_key_value.weight", "qkv hidden"}}}},
    {"self_attention.linear_qkv.bias",
     "qkv_joined",
     {{{"attention.query_key_value.bias", "qkv"}}},
     Needs::kQkvBias},
    {"self_attention.q_layernorm.weight",
     "replicate",
     {{{"attention.query_layernorm.weight", "head_dim"}}},
     Needs::kQkNorm},
    {"self_attention.k_layernorm.weight",
     "replicate",
     {{{"attention.key_layernorm.weight", "head_dim"}}},
     Needs::kQkNorm},
};

constexpr Row kMoe[] = {
    kMoeNormRow,  kRouterRow,     expert_bias_row("mlp.gate.expert_bias"), kApartUpRow, kApartDownRow,
    kSharedUpRow, kSharedDownRow,
};

constexpr LayerRows kLayer = {.attention = kAttention, .dense = kDenseRows, .moe = kMoe};

constexpr Row kEmbedding[] = {
    {"embedding.word_embeddings.weight", "vocab", {{{"word_embeddings.weight", "vocab hidden"}}}},
};
constexpr Row kTiedOutput[] = {
    {"output_layer.weight", "vocab", {{{"word_embeddings.weight", "vocab hidden"}}}, Needs::kTied},
};
constexpr Row kMtpTail[] = {
    {"final_layernorm.weight", "replicate", {{{"final_layernorm.weight", "hidden"}}}},
};

constexpr Section kSections[] = {
    {Scope::kOnce, "", "model.", kEmbedding, nullptr, Stage::kFirstAndMtp},
    {Scope::kLayers, "decoder.layers.{L}.", "model.layers.{L}.", {}, &kLayer},
    {Scope::kOnce, "", "model.", kFinalNormRows, nullptr, Stage::kFinalNorm},
    {Scope::kMtpHead, "mtp.layers.{M}.", "model.layers.{N}.", kNumberedMtpHeadRows, nullptr, Stage::kMtp},
    {Scope::kMtpLayers, "mtp.layers.{M}.mtp_model_layer.", "model.layers.{N}.", {}, &kLayer, Stage::kMtp},
    {Scope::kMtpTail, "mtp.layers.{M}.", "model.layers.{N}.", kMtpTail, nullptr, Stage::kMtp},
    {Scope::kOnce, "", "", kOutputRows, nullptr, Stage::kOutput},
    {Scope::kOnce, "", "model.", kTiedOutput, nullptr, Stage::kTiedOutput},
};

constexpr Unread kUnread[] = {
    {"lm_head.weight", "model.word_embeddings.weight", kTiedCopy, Needs::kTied},
};

constexpr std::string_view kBailing[] = {"bailing_moe_v2"}, kSarvam[] = {"sarvam_moe"};
constexpr Needs kForms[] = {Needs::kExpertsApart};
constexpr Needs kHas[] = {Needs::kQkvBias, Needs::kQkNorm, Needs::kExpertBias, Needs::kSharedExpert};

constexpr ConfigStep kConfig[] = {
    text({.kv_groups = 4}),
    all_of(kDenseFfn),
    refused("use_bias"),
    flag(kQkvBias, "use_qkv_bias", false),
    flag(kQkNorm, "use_qk_norm", true),
    layers(kAttentionAndExperts),
    part("first_dense_layers"),
    experts("num_experts"),
    size(kMoeFfn, "moe_intermediate_size"),
    shared_experts("num_shared_experts", 0),
    flag(kExpertBias, "moe_router_enable_expert_bias", true),
    layer_experts(),
    mtp(16, kAttentionAndExperts),
};

constexpr Family kFamilies[] = {
    {.name = "bailing_moe_v2",
     .model_types = kBailing,
     .architecture = "BailingMoeV2ForCausalLM",
     .summary = "Ling 2.0 (Bailing), with experts",
     .sections = kSections,
     .unread = kUnread,
     .expert_forms = kForms,
     .conditions = kHas,
     .config = kConfig,
     .facts = {"inclusionAI/Ling-mini-2.0, inclusionAI/Ling-flash-2.0", "fp8 blocks",
               "1, ep2, tp2, tp2 cp2, tp4 ep2"}},
    {.name = "sarvam_moe",
     .model_types = kSarvam,
     .architecture = "SarvamMoEForCausalLM",
     .summary = "Sarvam, with experts",
     .sections = kSections,
     .unread = kUnread,
     .expert_forms = kForms,
     .conditions = kHas,
     .vocab_divisor = 128,
     .config = kConfig,
     .facts = {"sarvamai/sarvam-30b", "", "1, ep8, tp2, tp2 ep2 etp2, tp2 ep4, tp4"}},
};

}  // namespace

std::span<const Family> bailing_moe_families() { return kFamilies; }

}  // namespace mckpt::impl
