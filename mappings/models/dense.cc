// Llama 3, Qwen2 and 2.5, Qwen3: one decoder of attention and gated MLP. The three have one table; conditions
// of rows (Needs) make the differences:
//
//              bias of q, k, v      norm of each query and key head
//   llama      no                   no
//   qwen2      yes                  no
//   qwen3      no                   yes
//
// Layer 3 of such a model, in the file and in Megatron:
//
//   model.layers.3.                     decoder.layers.3.
//     self_attn.{q,k,v}_proj.weight       self_attention.linear_qkv.weight
//     input_layernorm.weight              self_attention.linear_qkv.layer_norm_weight
//     mlp.{gate,up}_proj.weight           mlp.linear_fc1.weight
//     mlp.down_proj.weight                mlp.linear_fc2.weight
#include "mappings/models/blocks.h"
#include "mappings/models/families.h"

namespace mckpt::impl {
namespace {

constexpr LayerRows kLayer = {.attention = kAttentionRows, .dense = kDenseRows};

constexpr Section kPlainSections[] = {
    {Scope::kOnce, "", "model.", kEmbeddingRows},
    {Scope::kLayers, "decoder.layers.{L}.", "model.layers.{L}.", {}, &kLayer},
    {Scope::kOnce, "", "model.", kFinalNormRows, nullptr, Stage::kFinalNorm},
    {Scope::kOnce, "", "", kOutputRows, nullptr, Stage::kOutput},
    {Scope::kOnce, "", "model.", kTiedOutputRows, nullptr, Stage::kTiedOutput},
};
// Qwen3 may have a layer for multi-token prediction.
constexpr Section kSections[] = {
    {Scope::kOnce, "", "model.", kEmbeddingRows, nullptr, Stage::kFirstAndMtp},
    {Scope::kLayers, "decoder.layers.{L}.", "model.layers.{L}.", {}, &kLayer},
    {Scope::kOnce, "", "model.", kFinalNormRows, nullptr, Stage::kFinalNorm},
    {Scope::kMtpHead, "mtp.layers.{M}.", "mtp.", kQwenMtpHeadRows, nullptr, Stage::kMtp},
    {Scope::kMtpLayers, "mtp.layers.{M}.mtp_model_layer.", "mtp.layers.{M}.", {}, &kLayer, Stage::kMtp},
    {Scope::kMtpTail, "mtp.layers.{M}.", "mtp.", kQwenMtpTailRows, nullptr, Stage::kMtp},
    {Scope::kOnce, "", "", kOutputRows, nullptr, Stage::kOutput},
    {Scope::kOnce, "", "model.", kTiedOutputRows, nullptr, Stage::kTiedOutput},
};

constexpr Unread kUnread[] = {
    {"lm_head.weight", "model.embed_tokens.weight", kTiedCopy, Needs::kTied},
    {"model.layers.{L}.self_attn.rotary_emb.inv_freq", "", kRotary},
};

constexpr std::string_view kLlama[] = {"llama"};
constexpr std::string_view kMistral[] = {"mistral"};
constexpr std::string_view kSeedOss[] = {"seed_oss"};
constexpr std::string_view kQwen2[] = {"qwen2"};
constexpr std::string_view kQwen3[] = {"qwen3"};

constexpr Needs kSeedOssHas[] = {Needs::kQkvBias, Needs::kProjBias};
constexpr Needs kQwen2Has[] = {Needs::kQkvBias};
constexpr Needs kQwen3Has[] = {Needs::kQkNorm};

constexpr Family kFamilies[] = {
    {"llama", kLlama, "LlamaForCausalLM", "Llama 3", kPlainSections, kUnread},
    {"mistral", kMistral, "MistralForCausalLM", "Mistral 7B, Nemo, Small 3, Ministral", kPlainSections,
     kUnread},
    {"seed_oss", kSeedOss, "SeedOssForCausalLM", "Seed-OSS", kPlainSections, kUnread, {}, kSeedOssHas},
    {"qwen2", kQwen2, "Qwen2ForCausalLM", "Qwen2 and Qwen2.5, dense", kPlainSections, kUnread, {}, kQwen2Has},
    {"qwen3", kQwen3, "Qwen3ForCausalLM", "Qwen3, dense", kSections, kUnread, {}, kQwen3Has},
};

}  // namespace

std::span<const Family> dense_families() { return kFamilies; }

}  // namespace mckpt::impl
