// MiMo-V2-Flash: experts as DeepSeek spells them, without a shared one, and attention layers of two kinds
// (ModelConfig::layer_sizes): sliding ones have more groups of keys and values, and a sink for each query
// head.
//
//   model.layers.1.self_attn.attention_sink_bias   decoder.layers.1.self_attention.core_attention.softmax_offset
//   model.mtp.layers.0.pre_mlp_layernorm           mtp.layers.0.mtp_model_layer.mlp.linear_fc1.layer_norm_weight
//
// Peculiar to this family:
// - The heads of values are smaller than the heads of queries and keys.
// - Layers for prediction have a number of their own, are dense and slide; the config does not say how many
// there are.
// - The sinks are split over tensor-parallel ranks and not marked as split, so that Megatron-FSDP loses all
// but the first
//   rank's.
#include "mappings/models/config_blocks.h"
#include "mappings/models/deepseek.h"
#include "mappings/models/families.h"

namespace mckpt::impl {
namespace {

using namespace config_blocks;

constexpr Row kSinkRow = {.megatron = "self_attention.core_attention.softmax_offset",
                          .rule = "column",
                          .sources = {{{"self_attn.attention_sink_bias", "heads"}}},
                          .needs = Needs::kSinks,
                          .first_cells = true};
constexpr Row kAttention[] = {
    kSinkRow,
    kLinearProj,
    kFusedInputNorm,
    {"self_attention.linear_qkv.weight",
     "qkv",
     {{{"self_attn.q_proj.weight", "q hidden"},
       {"self_attn.k_proj.weight", "kv hidden"},
       {"self_attn.v_proj.weight", "values hidden"}}}},
};
constexpr Row kMoe[] = {
    kMoeNormRow, kRouterRow, expert_bias_row("mlp.gate.e_score_correction_bias"), kApartUpRow, kApartDownRow,
};
constexpr Row kMtpDense[] = {
    {"mlp.linear_fc1.layer_norm_weight", "replicate", {{{"pre_mlp_layernorm.weight", "hidden"}}}},
    kDenseRows[1],
    kDenseRows[2],
};
constexpr Row kMtpTail[] = {
    {"final_layernorm.weight", "replicate", {{{"final_layernorm.weight", "hidden"}}}},
};

constexpr LayerRows kLayer = {.attention = kAttention, .dense = kDenseRows, .moe = kMoe};
constexpr LayerRows kMtpLayer = {.attention = kAttention, .dense = kMtpDense};
constexpr std::string_view kNext = "model.mtp.layers.{M}.";

constexpr Section kSections[] = {
    {Scope::kOnce, "", "model.", kEmbeddingRows, nullptr, Stage::kFirstAndMtp},
    {Scope::kLayers, "decoder.layers.{L}.", "model.layers.{L}.", {}, &kLayer},
    {Scope::kOnce, "", "model.", kFinalNormRows, nullptr, Stage::kFinalNorm},
    {Scope::kMtpHead, "mtp.layers.{M}.", kNext, kNumberedMtpHeadRows, nullptr, Stage::kMtp},
    {Scope::kMtpLayers, "mtp.layers.{M}.mtp_model_layer.", kNext, {}, &kMtpLayer, Stage::kMtp},
    {Scope::kMtpTail, "mtp.layers.{M}.", kNext, kMtpTail, nullptr, Stage::kMtp},
    {Scope::kOnce, "", "", kOutputRows, nullptr, Stage::kOutput},
    {Scope::kOnce, "", "model.", kTiedOutputRows, nullptr, Stage::kTiedOutput},
};

constexpr Unread kUnread[] = {
    {"lm_head.weight", "model.embed_tokens.weight", kTiedCopy, Needs::kTied},
    {"model.layers.{L}.self_attn.rotary_emb.inv_freq", "", kRotary},
};

constexpr std::string_view kTypes[] = {"mimo_v2_flash"};
constexpr Needs kForms[] = {Needs::kExpertsApart};
constexpr Needs kHas[] = {Needs::kSinks, Needs::kExpertBias};

constexpr ConfigStep kConfig[] = {
    text({.kv_groups = 4, .head_dim = 192}),
    size(member<&ModelConfig::text, &TowerConfig::value_dim>, "v_head_dim"),
    all_of(kDenseFfn),
    refused("attention_bias"),
    refused("add_full_attention_sink_bias"),
    needed("add_swa_attention_sink_bias", "is false; Megatron's sliding layers of this family have sinks"),
    experts("n_routed_experts"),
    size(kMoeFfn, "moe_intermediate_size"),
    set(kExpertBias, true),
    part("mimo_v2_layers"),
    layer_experts(),
};

constexpr Family kFamilies[] = {
    {.name = "mimo_v2_flash",
     .model_types = kTypes,
     .architecture = "MiMoV2FlashForCausalLM",
     .summary = "MiMo-V2-Flash",
     .sections = kSections,
     .unread = kUnread,
     .expert_forms = kForms,
     .conditions = kHas,
     .config = kConfig,
     .facts = {"XiaomiMiMo/MiMo-V2-Flash", "fp8 blocks", "1, ep2, tp2, tp2 ep2, tp4 ep2"}},
};

}  // namespace

std::span<const Family> mimo_v2_flash_families() { return kFamilies; }

}  // namespace mckpt::impl
