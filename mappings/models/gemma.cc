// Gemma 1 to 3, the language models. Norms are stored less one, in the file as in Megatron, so they are
// copied. The gated activation is GELU, so that fsdp_dtensor has fc1 whole: gate and up of the first cell,
// then of the next.
//
// One name means two things: post_attention_layernorm is the norm before the MLP in Gemma 1; in Gemma 2 and
// 3, which have four norms, it follows the attention.
//
//   Gemma 1        input_layernorm   attention                              post_attention_layernorm     MLP
//   Gemma 2 and 3  input_layernorm   attention   post_attention_layernorm   pre_feedforward_layernorm    MLP   post_feedforward_layernorm
#include <array>

#include "mappings/models/blocks.h"
#include "mappings/models/families.h"
#include "mappings/models/gemma.h"

namespace mckpt::impl {
namespace {

constexpr LayerRows kTwoNorms = {.attention = kAttentionRows, .dense = kDenseRows};
constexpr LayerRows kFourNorms = {.attention = kFourNormAttentionRows, .dense = kFourNormDenseRows};

constexpr std::array<Section, 5> sections(const LayerRows& layer) {
  return {{{Scope::kOnce, "", "model.", kEmbeddingRows},
           {Scope::kLayers, "decoder.layers.{L}.", "model.layers.{L}.", {}, &layer},
           {Scope::kOnce, "", "model.", kFinalNormRows, nullptr, Stage::kFinalNorm},
           {Scope::kOnce, "", "", kOutputRows, nullptr, Stage::kOutput},
           {Scope::kOnce, "", "model.", kTiedOutputRows, nullptr, Stage::kTiedOutput}}};
}
constexpr std::array<Section, 5> kFirst = sections(kTwoNorms), kLater = sections(kFourNorms);

constexpr Unread kUnread[] = {
    {"lm_head.weight", "model.embed_tokens.weight", kTiedCopy, Needs::kTied},
    {"model.layers.{L}.self_attn.rotary_emb.inv_freq", "", kRotary},
};

constexpr std::string_view kGemma[] = {"gemma"};
constexpr std::string_view kGemma2[] = {"gemma2"};
constexpr std::string_view kGemma3[] = {"gemma3_text"};
constexpr Needs kGemma3Has[] = {Needs::kQkNorm};

constexpr Family kFamilies[] = {
    {"gemma", kGemma, "GemmaForCausalLM", "Gemma", kFirst, kUnread},
    {"gemma2", kGemma2, "Gemma2ForCausalLM", "Gemma 2", kLater, kUnread},
    {"gemma3_text",
     kGemma3,
     "Gemma3ForCausalLM",
     "Gemma 3, the language model",
     kLater,
     kUnread,
     {},
     kGemma3Has},
};

}  // namespace

std::span<const Family> gemma_families() { return kFamilies; }

}  // namespace mckpt::impl
