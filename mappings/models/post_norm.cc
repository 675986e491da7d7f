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

#include "mappings/models/families.h"
#include "mappings/models/post_norm.h"

namespace mckpt::impl {
namespace {

using namespace config_blocks;

constexpr Row kOlmoAttention[] = {
    kPostNormProj,
    kPostAttentionNorm,
    kPostNormQkv,
    {"self_attention.q_layernorm.weight", "replicate", {{{"self_attn.q_norm.weight", "q"}}}},
    {"self_attention.k_layernorm.weight", "replicate", {{{"self_attn.k_norm.weight", "kv"}}}},
};
constexpr Row kGlmAttention[] = {
    kPostNormProj,
    {"self_attention.linear_proj.post_layernorm.weight",
     "replicate",
     {{{"post_self_attn_layernorm.weight", "hidden"}}}},
    kFusedInputNorm,
    kPostNormQkv,
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
    kPostNormDown,
    {"mlp.linear_fc2.post_layernorm.weight", "replicate", {{{"post_mlp_layernorm.weight", "hidden"}}}},
};

constexpr LayerRows kOlmo = {.attention = kOlmoAttention, .dense = kPostNormDense};
constexpr LayerRows kGlm = {.attention = kGlmAttention, .dense = kGlmDense};

constexpr std::array<Section, 5> sections(const LayerRows& layer) {
  return {{{Scope::kOnce, "", "model.", kEmbeddingRows},
           {Scope::kLayers, "decoder.layers.{L}.", "model.layers.{L}.", {}, &layer},
           {Scope::kOnce, "", "model.", kFinalNormRows, nullptr, Stage::kFinalNorm},
           {Scope::kOnce, "", "", kOutputRows, nullptr, Stage::kOutput},
           {Scope::kOnce, "", "model.", kTiedOutputRows, nullptr, Stage::kTiedOutput}}};
}
constexpr std::array<Section, 5> kExaoneSections = sections(kExaoneLayer), kOlmoSections = sections(kOlmo),
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

constexpr ConfigStep kOlmoConfig[] = {
    text(),
    all_of(kPlainDecoder),
    set(kQkNorm, true),
};
constexpr ConfigStep kGlmConfig[] = {
    text({.kv_groups = 2, .head_dim = 128}),
    all_of(kDenseFfn),
    flag(kQkvBias, "attention_bias", true),
    layers(),
};

constexpr Family kFamilies[] = {
    {.name = "exaone4",
     .model_types = kExaone4,
     .architecture = "Exaone4ForCausalLM",
     .summary = "EXAONE 4.0",
     .sections = kExaoneSections,
     .unread = kUnread,
     .config = kExaone4Config,
     .facts = {"LGAI-EXAONE/EXAONE-4.0-1.2B, LGAI-EXAONE/EXAONE-4.0-32B", "fp8, awq", "1, tp2"}},
    {.name = "olmo2",
     .model_types = kOlmo2,
     .architecture = "Olmo2ForCausalLM",
     .summary = "OLMo 2",
     .sections = kOlmoSections,
     .unread = kUnread,
     .config = kOlmoConfig,
     .facts = {"allenai/OLMo-2-1124-7B, allenai/OLMo-2-0325-32B", "", ""}},
    {.name = "olmo3",
     .model_types = kOlmo3,
     .architecture = "Olmo3ForCausalLM",
     .summary = "OLMo 3",
     .sections = kOlmoSections,
     .unread = kUnread,
     .config = kOlmoConfig,
     .facts = {"allenai/Olmo-3-1025-7B, allenai/Olmo-3-1125-32B", "", ""}},
    {.name = "glm4",
     .model_types = kGlm4,
     .architecture = "Glm4ForCausalLM",
     .summary = "GLM-4-0414 and GLM-Z1, dense",
     .sections = kGlmSections,
     .unread = kUnread,
     .conditions = kGlmHas,
     .config = kGlmConfig,
     .facts = {"zai-org/GLM-4-9B-0414, zai-org/GLM-4-32B-0414", "", ""}},
};

}  // namespace

std::span<const Family> post_norm_families() { return kFamilies; }

}  // namespace mckpt::impl
