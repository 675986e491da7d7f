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
#include "mappings/models/config_blocks.h"
#include "mappings/models/families.h"
#include "mappings/models/gemma.h"

namespace mckpt::impl {
namespace {

using namespace config_blocks;

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

constexpr ConfigStep kGemmaConfig[] = {
    text({.kv_groups = 16, .head_dim = 256}),
    all_of(kGemmaDecoder),
};

constexpr Family kFamilies[] = {
    {.name = "gemma",
     .model_types = kGemma,
     .architecture = "GemmaForCausalLM",
     .summary = "Gemma",
     .sections = kFirst,
     .unread = kUnread,
     .config = kGemmaConfig,
     .facts = {"google/gemma-2b, google/gemma-7b", "", "1, tp2 cp2, tp8"}},
    {.name = "gemma2",
     .model_types = kGemma2,
     .architecture = "Gemma2ForCausalLM",
     .summary = "Gemma 2",
     .sections = kLater,
     .unread = kUnread,
     .config = kGemma2Config,
     .facts = {"google/gemma-2-2b, google/gemma-2-27b", "", "1, tp2, tp8"}},
    {.name = "gemma3_text",
     .model_types = kGemma3,
     .architecture = "Gemma3ForCausalLM",
     .summary = "Gemma 3, the language model",
     .sections = kLater,
     .unread = kUnread,
     .conditions = kGemma3Has,
     .config = kGemma3TextConfig,
     .facts = {"google/gemma-3-270m, google/gemma-3-1b-pt", "", "1, pp2, tp2, tp4"}},
};

}  // namespace

std::span<const Family> gemma_families() { return kFamilies; }

}  // namespace mckpt::impl
