// MiMo: Qwen2 with MTP layers of its own names.
//
//   model.mtp_layers.0.token_layernorm      mtp.layers.0.enorm
//   model.mtp_layers.0.hidden_layernorm     mtp.layers.0.hnorm
//   model.mtp_layers.0.input_proj           mtp.layers.0.eh_proj: the file has the columns of the hidden state first, Megatron
//                                           the embedding's rows
//   model.mtp_layers.0.self_attn ...        mtp.layers.0.mtp_model_layer.self_attention ...
#include "mappings/models/blocks.h"
#include "mappings/models/config_blocks.h"
#include "mappings/models/families.h"

namespace mckpt::impl {
namespace {

using namespace config_blocks;

constexpr Row kMtpHead[] = {
    {"enorm.weight", "replicate", {{{"token_layernorm.weight", "hidden"}}}},
    {"hnorm.weight", "replicate", {{{"hidden_layernorm.weight", "hidden"}}}},
    {"eh_proj.weight", "column_swapped", {{{"input_proj.weight", "hidden 2*hidden"}}}},
};
constexpr Row kMtpTail[] = {
    {"final_layernorm.weight", "replicate", {{{"final_layernorm.weight", "hidden"}}}},
};
constexpr LayerRows kLayer = {.attention = kAttentionRows, .dense = kDenseRows};
constexpr std::string_view kMtp = "mtp.layers.{M}.", kTheirMtp = "model.mtp_layers.{M}.";

constexpr Section kSections[] = {
    {Scope::kOnce, "", "model.", kEmbeddingRows, nullptr, Stage::kFirstAndMtp},
    {Scope::kLayers, "decoder.layers.{L}.", "model.layers.{L}.", {}, &kLayer},
    {Scope::kOnce, "", "model.", kFinalNormRows, nullptr, Stage::kFinalNorm},
    {Scope::kMtpHead, kMtp, kTheirMtp, kMtpHead, nullptr, Stage::kMtp},
    {Scope::kMtpLayers, "mtp.layers.{M}.mtp_model_layer.", kTheirMtp, {}, &kLayer, Stage::kMtp},
    {Scope::kMtpTail, kMtp, kTheirMtp, kMtpTail, nullptr, Stage::kMtp},
    {Scope::kOnce, "", "", kOutputRows, nullptr, Stage::kOutput},
    {Scope::kOnce, "", "model.", kTiedOutputRows, nullptr, Stage::kTiedOutput},
};

constexpr Unread kUnread[] = {
    {"lm_head.weight", "model.embed_tokens.weight", kTiedCopy, Needs::kTied},
};

constexpr std::string_view kTypes[] = {"mimo"};
constexpr Needs kHas[] = {Needs::kQkvBias};

constexpr ConfigStep kConfig[] = {
    text({.kv_groups = 32, .null_groups_are_heads = true}),
    all_of(kDenseFfn),
    flag(kQkvBias, "attention_bias", true),
    layers(),
    mtp(16),
};

constexpr Family kFamilies[] = {
    {.name = "mimo",
     .model_types = kTypes,
     .architecture = "MiMoForCausalLM",
     .summary = "MiMo, dense, with MTP",
     .sections = kSections,
     .unread = kUnread,
     .conditions = kHas,
     .config = kConfig,
     .facts = {"XiaomiMiMo/MiMo-7B-Base", "", "1, pp2, tp2, tp2 cp2"}},
};

}  // namespace

std::span<const Family> mimo_families() { return kFamilies; }

}  // namespace mckpt::impl
