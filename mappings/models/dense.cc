// Llama 3, Qwen2 and 2.5, Qwen3: one decoder of attention and gated MLP.
#include "mappings/models/blocks.h"
#include "mappings/models/families.h"

namespace mckpt::impl {
namespace {

constexpr LayerRows kLayer = {.attention = kAttentionRows, .dense = kDenseRows};

constexpr Section kSections[] = {
    {Scope::kOnce, "", "model.", kEmbeddingRows, nullptr, Stage::kFirstAndMtp},
    {Scope::kLayers, "decoder.layers.{L}.", "model.layers.{L}.", {}, &kLayer},
    {Scope::kOnce, "", "model.", kFinalNormRows, nullptr, Stage::kLast},
    {Scope::kMtpHead, "mtp.layers.{M}.", "mtp.", kQwenMtpHeadRows, nullptr, Stage::kLast},
    {Scope::kMtpLayers, "mtp.layers.{M}.mtp_model_layer.", "mtp.layers.{M}.", {}, &kLayer, Stage::kLast},
    {Scope::kMtpTail, "mtp.layers.{M}.", "mtp.", kQwenMtpTailRows, nullptr, Stage::kLast},
    {Scope::kOnce, "", "", kOutputRows, nullptr, Stage::kLast},
    {Scope::kOnce, "", "model.", kTiedOutputRows, nullptr, Stage::kLastOfMany},
};

constexpr Unread kUnread[] = {
    {"lm_head.weight", "model.embed_tokens.weight", kTiedCopy, Needs::kTied},
    {"model.layers.{L}.self_attn.rotary_emb.inv_freq", "", kRotary},
};

constexpr std::string_view kLlama[] = {"llama"};
constexpr std::string_view kQwen2[] = {"qwen2"};
constexpr std::string_view kQwen3[] = {"qwen3"};

constexpr Family kFamilies[] = {
    {"llama", kLlama, "LlamaForCausalLM", "Llama 3", kSections, kUnread},
    {"qwen2", kQwen2, "Qwen2ForCausalLM", "Qwen2 and Qwen2.5, dense", kSections, kUnread},
    {"qwen3", kQwen3, "Qwen3ForCausalLM", "Qwen3, dense", kSections, kUnread},
};

}  // namespace

std::span<const Family> dense_families() { return kFamilies; }

}  // namespace mckpt::impl
