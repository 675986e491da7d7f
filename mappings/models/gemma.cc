// Gemma 1 to 3, the language models. Norms are stored less one, in the file as in Megatron, so they are copied. The gated
// activation is GELU, so that fsdp_dtensor has fc1 whole: gate and up of the first cell, then of the next.
//
// One name means two things: post_attention_layernorm is the norm before the MLP in Gemma 1; in Gemma 2 and 3, which have
// four norms, it follows the attention.
//
//   Gemma 1        input_layernorm   attention                              post_attention_layernorm     MLP
//   Gemma 2 and 3  input_layernorm   attention   post_attention_layernorm   pre_feedforward_layernorm    MLP   post_feedforward_layernorm
#include <array>

#include "mappings/models/blocks.h"
#include "mappings/models/families.h"

namespace mckpt::impl {
namespace {

constexpr Row kAttention[] = {
    {"self_attention.linear_proj.weight", "row", {{{"self_attn.o_proj.weight", "hidden attention"}}}},
    {"self_attention.linear_proj.post_layernorm.weight",
     "replicate",
     {{{"post_attention_layernorm.weight", "hidden"}}}},
    {"self_attention.linear_qkv.layer_norm_weight", "replicate", {{{"input_layernorm.weight", "hidden"}}}},
    {"self_attention.linear_qkv.weight",
     "qkv",
     {{{"self_attn.q_proj.weight", "q hidden"},
       {"self_attn.k_proj.weight", "kv hidden"},
       {"self_attn.v_proj.weight", "kv hidden"}}}},
    {"self_attention.q_layernorm.weight",
     "replicate",
     {{{"self_attn.q_norm.weight", "head_dim"}}},
     Needs::kQkNorm},
    {"self_attention.k_layernorm.weight",
     "replicate",
     {{{"self_attn.k_norm.weight", "head_dim"}}},
     Needs::kQkNorm},
};
constexpr Row kDense[] = {
    {"mlp.linear_fc1.layer_norm_weight", "replicate", {{{"pre_feedforward_layernorm.weight", "hidden"}}}},
    {"mlp.linear_fc1.weight",
     "gated_mlp",
     {{{"mlp.gate_proj.weight", "ffn hidden"}, {"mlp.up_proj.weight", "ffn hidden"}}},
     Needs::kAlways,
     KeySplit::kSwiglu},
    {"mlp.linear_fc2.weight", "row", {{{"mlp.down_proj.weight", "hidden ffn"}}}},
    {"mlp.linear_fc2.post_layernorm.weight",
     "replicate",
     {{{"post_feedforward_layernorm.weight", "hidden"}}}},
};

constexpr LayerRows kTwoNorms = {.attention = kAttentionRows, .dense = kDenseRows};
constexpr LayerRows kFourNorms = {.attention = kAttention, .dense = kDense};

constexpr std::array<Section, 5> sections(const LayerRows& layer) {
  return {{{Scope::kOnce, "", "model.", kEmbeddingRows},
           {Scope::kLayers, "decoder.layers.{L}.", "model.layers.{L}.", {}, &layer},
           {Scope::kOnce, "", "model.", kFinalNormRows, nullptr, Stage::kLast},
           {Scope::kOnce, "", "", kOutputRows, nullptr, Stage::kLast},
           {Scope::kOnce, "", "model.", kTiedOutputRows, nullptr, Stage::kLastOfMany}}};
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
