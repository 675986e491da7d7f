// Models with norms behind the attention and the MLP: EXAONE 4 and OLMo 2 and 3, which have none in front of
// them, and GLM-4 (dense), which has both.
//
//   EXAONE 4, OLMo   attention   post_attention_layernorm        MLP   post_feedforward_layernorm
//   GLM-4            input_layernorm   attention   post_self_attn_layernorm   post_attention_layernorm   MLP   post_mlp_layernorm
//
// OLMo norms all queries of a token at once, and all keys: such a norm has an item for every row of the
// projection, and every cell has all of it. GLM-4 has gate and up in one tensor. Megatron-Bridge knows EXAONE
// 4 only; the other rows follow it and the names of transformers.
#include <array>

#include "mappings/models/blocks.h"
#include "mappings/models/families.h"

namespace mckpt::impl {
namespace {

constexpr Row kProj = {
    "self_attention.linear_proj.weight", "row", {{{"self_attn.o_proj.weight", "hidden attention"}}}};
constexpr Row kPostAttention = {"self_attention.linear_proj.post_layernorm.weight",
                                "replicate",
                                {{{"post_attention_layernorm.weight", "hidden"}}}};
constexpr Row kQkv = {"self_attention.linear_qkv.weight",
                      "qkv",
                      {{{"self_attn.q_proj.weight", "q hidden"},
                        {"self_attn.k_proj.weight", "kv hidden"},
                        {"self_attn.v_proj.weight", "kv hidden"}}}};
constexpr Row kUp = {"mlp.linear_fc1.weight",
                     "gated_mlp",
                     {{{"mlp.gate_proj.weight", "ffn hidden"}, {"mlp.up_proj.weight", "ffn hidden"}}},
                     Needs::kAlways,
                     KeySplit::kSwiglu};
constexpr Row kDown = {"mlp.linear_fc2.weight", "row", {{{"mlp.down_proj.weight", "hidden ffn"}}}};

constexpr Row kExaoneAttention[] = {
    kProj,
    kPostAttention,
    kQkv,
    {"self_attention.q_layernorm.weight", "replicate", {{{"self_attn.q_norm.weight", "head_dim"}}}},
    {"self_attention.k_layernorm.weight", "replicate", {{{"self_attn.k_norm.weight", "head_dim"}}}},
};
constexpr Row kOlmoAttention[] = {
    kProj,
    kPostAttention,
    kQkv,
    {"self_attention.q_layernorm.weight", "replicate", {{{"self_attn.q_norm.weight", "q"}}}},
    {"self_attention.k_layernorm.weight", "replicate", {{{"self_attn.k_norm.weight", "kv"}}}},
};
constexpr Row kDense[] = {
    kUp,
    kDown,
    {"mlp.linear_fc2.post_layernorm.weight",
     "replicate",
     {{{"post_feedforward_layernorm.weight", "hidden"}}}},
};

constexpr Row kGlmAttention[] = {
    kProj,
    {"self_attention.linear_proj.post_layernorm.weight",
     "replicate",
     {{{"post_self_attn_layernorm.weight", "hidden"}}}},
    {"self_attention.linear_qkv.layer_norm_weight", "replicate", {{{"input_layernorm.weight", "hidden"}}}},
    kQkv,
    {"self_attention.linear_qkv.bias",
     "qkv",
     {{{"self_attn.q_proj.bias", "q"}, {"self_attn.k_proj.bias", "kv"}, {"self_attn.v_proj.bias", "kv"}}},
     Needs::kQkvBias},
};
constexpr Row kGlmDense[] = {
    {"mlp.linear_fc1.layer_norm_weight", "replicate", {{{"post_attention_layernorm.weight", "hidden"}}}},
    {"mlp.linear_fc1.weight",
     "gated_mlp_joined",
     {{{"mlp.gate_up_proj.weight", "2*ffn hidden"}}},
     Needs::kAlways,
     KeySplit::kSwiglu},
    kDown,
    {"mlp.linear_fc2.post_layernorm.weight", "replicate", {{{"post_mlp_layernorm.weight", "hidden"}}}},
};

constexpr LayerRows kExaone = {.attention = kExaoneAttention, .dense = kDense};
constexpr LayerRows kOlmo = {.attention = kOlmoAttention, .dense = kDense};
constexpr LayerRows kGlm = {.attention = kGlmAttention, .dense = kGlmDense};

constexpr std::array<Section, 5> sections(const LayerRows& layer) {
  return {{{Scope::kOnce, "", "model.", kEmbeddingRows},
           {Scope::kLayers, "decoder.layers.{L}.", "model.layers.{L}.", {}, &layer},
           {Scope::kOnce, "", "model.", kFinalNormRows, nullptr, Stage::kFinalNorm},
           {Scope::kOnce, "", "", kOutputRows, nullptr, Stage::kOutput},
           {Scope::kOnce, "", "model.", kTiedOutputRows, nullptr, Stage::kTiedOutput}}};
}
constexpr std::array<Section, 5> kExaoneSections = sections(kExaone), kOlmoSections = sections(kOlmo),
                                 kGlmSections = sections(kGlm);

constexpr Unread kUnread[] = {
    {"lm_head.weight", "model.embed_tokens.weight", kTiedCopy, Needs::kTied},
    {"model.layers.{L}.self_attn.rotary_emb.inv_freq", "", kRotary},
};

constexpr std::string_view kExaone4[] = {"exaone4"};
constexpr std::string_view kOlmo2[] = {"olmo2"};
constexpr std::string_view kOlmo3[] = {"olmo3"};
constexpr std::string_view kGlm4[] = {"glm4"};
constexpr Needs kGlmHas[] = {Needs::kQkvBias};

constexpr Family kFamilies[] = {
    {"exaone4", kExaone4, "Exaone4ForCausalLM", "EXAONE 4.0", kExaoneSections, kUnread},
    {"olmo2", kOlmo2, "Olmo2ForCausalLM", "OLMo 2", kOlmoSections, kUnread},
    {"olmo3", kOlmo3, "Olmo3ForCausalLM", "OLMo 3", kOlmoSections, kUnread},
    {"glm4", kGlm4, "Glm4ForCausalLM", "GLM-4-0414 and GLM-Z1, dense", kGlmSections, kUnread, {}, kGlmHas},
};

}  // namespace

std::span<const Family> post_norm_families() { return kFamilies; }

}  // namespace mckpt::impl
