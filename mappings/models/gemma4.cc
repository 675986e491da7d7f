// Gemma 4, the language model and the one with vision, perhaps with audio. Norms are plain, and there are
// five to nine of them in a layer; every layer has a scalar, a buffer. Layers are of two kinds with heads of
// two sizes (ModelConfig::layer_sizes):
//
//   sliding   heads of head_dim, projections of queries, keys and values
//   full      heads of global_head_dim; with attention_k_eq_v no projection of values: the keys are the values, too
//   the last num_kv_shared_layers of both kinds have no keys and values of their own, and perhaps an MLP of twice the width
//
// Megatron's parameters have rows for keys and values in every layer, and a norm of keys: those that the file
// does not have are copies of the keys, zeros and ones (rules qkv_keys_as_values, qkv_queries_only,
// head_norm_of_ones).
//
//   with experts   every layer has a dense MLP beside them, as Megatron's shared expert; norms are fused, as in Gemma 3
//   without        layers of Megatron's own modules, all norms apart; E2B and E4B give each layer a part of a second embedding
#include <array>

#include "mappings/models/blocks.h"
#include "mappings/models/config_blocks.h"
#include "mappings/models/families.h"

namespace mckpt::impl {
namespace {

using namespace config_blocks;

constexpr Row kAttention[] = {
    {.megatron = "layer_scalar",
     .rule = "replicate",
     .sources = {{{"layer_scalar", "1"}}},
     .buffer = true,
     .typed_as_model = true},
    {"input_layernorm.weight", "replicate", {{{"input_layernorm.weight", "hidden"}}}, Needs::kNoExperts},
    kLinearProj,
    {"self_attention.linear_proj.post_layernorm.weight",
     "replicate",
     {{{"post_attention_layernorm.weight", "hidden"}}},
     Needs::kExperts},
    {"self_attention.linear_qkv.layer_norm_weight",
     "replicate",
     {{{"input_layernorm.weight", "hidden"}}},
     Needs::kExperts},
    {"self_attention.linear_qkv.weight",
     "qkv",
     {{{"self_attn.q_proj.weight", "q hidden"},
       {"self_attn.k_proj.weight", "kv hidden"},
       {"self_attn.v_proj.weight", "kv hidden"}}},
     Needs::kOwnValues},
    {"self_attention.linear_qkv.weight",
     "qkv_keys_as_values",
     {{{"self_attn.q_proj.weight", "q hidden"}, {"self_attn.k_proj.weight", "kv hidden"}}},
     Needs::kOneKeyValue},
    {"self_attention.linear_qkv.weight",
     "qkv_queries_only",
     {{{"self_attn.q_proj.weight", "q hidden"}}},
     Needs::kNoKeys},
    {"self_attention.q_layernorm.weight", "replicate", {{{"self_attn.q_norm.weight", "head_dim"}}}},
    {"self_attention.k_layernorm.weight",
     "replicate",
     {{{"self_attn.k_norm.weight", "head_dim"}}},
     Needs::kKeyNorm},
    {"self_attention.k_layernorm.weight", "head_norm_of_ones", {}, Needs::kNoKeys},
};

constexpr Row kDense[] = {
    {"pre_mlp_layernorm.weight", "replicate", {{{"pre_feedforward_layernorm.weight", "hidden"}}}},
    kGatedFc1,
    kFc2,
    {"post_self_attn_layernorm.weight", "replicate", {{{"post_attention_layernorm.weight", "hidden"}}}},
    {"post_mlp_layernorm.weight", "replicate", {{{"post_feedforward_layernorm.weight", "hidden"}}}},
    stateless(copied("per_layer_input_gate.weight", "layer_input hidden", Needs::kLayerInput)),
    stateless(copied("per_layer_projection.weight", "hidden layer_input", Needs::kLayerInput)),
    stateless(copied("post_per_layer_input_norm.weight", "hidden", Needs::kLayerInput)),
};

// A norm that Megatron-Bridge adds to a layer.
constexpr Row bridge_norm(std::string_view megatron, std::string_view file) {
  return stateless({megatron, "replicate", {{{file, "hidden"}}}});
}
constexpr Row kMoe[] = {
    {"pre_mlp_layernorm.weight", "replicate", {{{"pre_feedforward_layernorm_2.weight", "hidden"}}}},
    {"mlp.router.weight", "replicate", {{{"router.proj.weight", "experts hidden"}}}},
    {"mlp.router.per_expert_scale", "replicate", {{{"router.per_expert_scale", "experts"}}}},
    {"mlp.router.scale", "replicate", {{{"router.scale", "hidden"}}}},
    {"mlp.experts.linear_fc1.weight{E}",
     "gated_expert",
     {{{"experts.gate_up_proj", "experts 2*expert_ffn hidden"}}},
     Needs::kExpertsFused,
     KeySplit::kSwiglu},
    {"mlp.experts.linear_fc2.weight{E}",
     "expert_row",
     {{{"experts.down_proj", "experts hidden expert_ffn"}}},
     Needs::kExpertsFused},
    {"mlp.shared_experts.linear_fc1.weight",
     "gated_mlp",
     {{{"mlp.gate_proj.weight", "shared_ffn hidden"}, {"mlp.up_proj.weight", "shared_ffn hidden"}}},
     Needs::kAlways,
     KeySplit::kSwiglu},
    {"mlp.shared_experts.linear_fc2.weight", "row", {{{"mlp.down_proj.weight", "hidden shared_ffn"}}}},
    bridge_norm("mlp.post_moe_layernorm.weight", "post_feedforward_layernorm_2.weight"),
    bridge_norm("mlp.post_shared_expert_layernorm.weight", "post_feedforward_layernorm_1.weight"),
    bridge_norm("pre_shared_expert_layernorm.weight", "pre_feedforward_layernorm.weight"),
    bridge_norm("post_ffn_layernorm.weight", "post_feedforward_layernorm.weight"),
};

// The second embedding: for every token a part for every layer.
constexpr Row kLayerInputs[] = {
    stateless({"per_layer_embedding.weight",
               "vocab",
               {{{"embed_tokens_per_layer.weight", "vocab layers*layer_input"}}},
               Needs::kLayerInput}),
    {"per_layer_model_proj.weight",
     "column",
     {{{"per_layer_model_projection.weight", "layers*layer_input hidden"}}},
     Needs::kLayerInput},
    stateless({"per_layer_proj_norm.weight",
               "replicate",
               {{{"per_layer_projection_norm.weight", "layer_input"}}},
               Needs::kLayerInput}),
};

constexpr LayerRows kLayer = {.attention = kAttention, .dense = kDense, .moe = kMoe};

constexpr Section kText[] = {
    {Scope::kOnce, "", "model.", kEmbeddingRows},
    {Scope::kLayers, "decoder.layers.{L}.", "model.layers.{L}.", {}, &kLayer},
    {Scope::kOnce, "", "model.", kFinalNormRows, nullptr, Stage::kFinalNorm},
    {Scope::kOnce, "", "model.", kLayerInputs},
    {Scope::kOnce, "", "", kOutputRows, nullptr, Stage::kOutput},
    {Scope::kOnce, "", "model.", kTiedOutputRows, nullptr, Stage::kTiedOutput},
};

// The towers and the projections behind them are Hugging Face's modules.
// A linear layer of a tower. Where it is clipped, the ranges of what it reads and gives are four buffers.
#define MCKPT_CLIPPABLE(name, shape) \
  copied(name ".linear.weight", shape), copied_buffer(name ".input_min", "", Needs::kClipped), \
      copied_buffer(name ".input_max", "", Needs::kClipped), \
      copied_buffer(name ".output_min", "", Needs::kClipped), \
      copied_buffer(name ".output_max", "", Needs::kClipped)

constexpr Row kPatches[] = {
    copied_buffer("std_bias", "hidden", Needs::kStandardized),
    copied_buffer("std_scale", "hidden", Needs::kStandardized),
    copied("patch_embedder.position_embedding_table", "2 positions hidden"),
    copied("patch_embedder.input_proj.weight", "hidden channels*patch*patch"),
};
constexpr Row kBlock[] = {
    MCKPT_CLIPPABLE("self_attn.q_proj", "attention hidden"),
    MCKPT_CLIPPABLE("self_attn.k_proj", "kv hidden"),
    MCKPT_CLIPPABLE("self_attn.v_proj", "kv hidden"),
    MCKPT_CLIPPABLE("self_attn.o_proj", "hidden attention"),
    copied("self_attn.q_norm.weight", "head_dim"),
    copied("self_attn.k_norm.weight", "head_dim"),
    MCKPT_CLIPPABLE("mlp.gate_proj", "ffn hidden"),
    MCKPT_CLIPPABLE("mlp.up_proj", "ffn hidden"),
    MCKPT_CLIPPABLE("mlp.down_proj", "hidden ffn"),
    copied("input_layernorm.weight", "hidden"),
    copied("post_attention_layernorm.weight", "hidden"),
    copied("pre_feedforward_layernorm.weight", "hidden"),
    copied("post_feedforward_layernorm.weight", "hidden"),
};
constexpr Row kProjection[] = {
    copied("embedding_projection.weight", "text_hidden hidden"),
};
constexpr LayerRows kVisionLayer = {.attention = kBlock};

constexpr Row kSubsampling[] = {
    copied("layer0.conv.weight", "audio_channels 1 3 3", Needs::kAudio),
    copied("layer0.norm.weight", "audio_channels", Needs::kAudio),
    copied("layer1.conv.weight", "audio_last_channels audio_channels 3 3", Needs::kAudio),
    copied("layer1.norm.weight", "audio_last_channels", Needs::kAudio),
    copied("input_proj_linear.weight", "hidden audio_bins*audio_last_channels", Needs::kAudio),
};
constexpr Row kConformer[] = {
    MCKPT_CLIPPABLE("feed_forward1.ffw_layer_1", "ffn hidden"),
    MCKPT_CLIPPABLE("feed_forward1.ffw_layer_2", "hidden ffn"),
    copied("feed_forward1.pre_layer_norm.weight", "hidden"),
    copied("feed_forward1.post_layer_norm.weight", "hidden"),
    MCKPT_CLIPPABLE("feed_forward2.ffw_layer_1", "ffn hidden"),
    MCKPT_CLIPPABLE("feed_forward2.ffw_layer_2", "hidden ffn"),
    copied("feed_forward2.pre_layer_norm.weight", "hidden"),
    copied("feed_forward2.post_layer_norm.weight", "hidden"),
    copied("self_attn.per_dim_scale", "head_dim"),
    MCKPT_CLIPPABLE("self_attn.q_proj", "attention hidden"),
    MCKPT_CLIPPABLE("self_attn.k_proj", "attention hidden"),
    MCKPT_CLIPPABLE("self_attn.v_proj", "attention hidden"),
    MCKPT_CLIPPABLE("self_attn.post", "hidden hidden"),
    copied("self_attn.relative_k_proj.weight", "attention hidden"),
    MCKPT_CLIPPABLE("lconv1d.linear_start", "2*hidden hidden"),
    MCKPT_CLIPPABLE("lconv1d.linear_end", "hidden hidden"),
    copied("lconv1d.depthwise_conv1d.weight", "hidden 1 audio_kernel"),
    copied("lconv1d.pre_layer_norm.weight", "hidden"),
    copied("lconv1d.conv_norm.weight", "hidden"),
    copied("norm_pre_attn.weight", "hidden"),
    copied("norm_post_attn.weight", "hidden"),
    copied("norm_out.weight", "hidden"),
};
constexpr Row kAudioOutput[] = {
    copied("output_proj.weight", "audio_out hidden", Needs::kAudio),
    copied("output_proj.bias", "audio_out", Needs::kAudio),
};
constexpr Row kAudioProjection[] = {
    copied("embedding_projection.weight", "text_hidden audio_out", Needs::kAudio),
};
#undef MCKPT_CLIPPABLE
constexpr LayerRows kAudioLayer = {.attention = kConformer};

constexpr std::string_view kVision = "vision_tower.", kVisionFile = "model.vision_tower.";
constexpr std::string_view kBlocks = "vision_tower.encoder.layers.{L}.";
constexpr std::string_view kBlocksFile = "model.vision_tower.encoder.layers.{L}.";
constexpr std::string_view kAudio = "audio_tower.", kAudioFile = "model.audio_tower.";
constexpr std::string_view kSounds = "audio_tower.subsample_conv_projection.";
constexpr std::string_view kSoundsFile = "model.audio_tower.subsample_conv_projection.";
constexpr std::string_view kHearing = "audio_tower.layers.{L}.",
                           kHearingFile = "model.audio_tower.layers.{L}.";
constexpr std::string_view kLanguage = "language_model.", kLanguageFile = "model.language_model.";
constexpr std::string_view kLayers = "language_model.decoder.layers.{L}.";
constexpr std::string_view kLayersFile = "model.language_model.layers.{L}.";

constexpr Section kWithVision[] = {
    {Scope::kOnce, kVision, kVisionFile, kPatches, nullptr, Stage::kFirst, Tower::kVision},
    {Scope::kLayers, kBlocks, kBlocksFile, {}, &kVisionLayer, Stage::kFirst, Tower::kVision, false},
    {Scope::kOnce, "embed_vision.", "model.embed_vision.", kProjection, nullptr, Stage::kFirst,
     Tower::kVision},
    {Scope::kOnce, kSounds, kSoundsFile, kSubsampling, nullptr, Stage::kFirst, Tower::kAudio},
    {Scope::kLayers, kHearing, kHearingFile, {}, &kAudioLayer, Stage::kFirst, Tower::kAudio, false},
    {Scope::kOnce, kAudio, kAudioFile, kAudioOutput, nullptr, Stage::kFirst, Tower::kAudio},
    {Scope::kOnce, "embed_audio.", "model.embed_audio.", kAudioProjection, nullptr, Stage::kFirst,
     Tower::kAudio},
    {Scope::kOnce, kLanguage, kLanguageFile, kEmbeddingRows},
    {Scope::kLayers, kLayers, kLayersFile, {}, &kLayer},
    {Scope::kOnce, kLanguage, kLanguageFile, kFinalNormRows, nullptr, Stage::kFinalNorm},
    {Scope::kOnce, kLanguage, kLanguageFile, kLayerInputs},
    {Scope::kOnce, kLanguage, "", kOutputRows, nullptr, Stage::kOutput},
    {Scope::kOnce, kLanguage, kLanguageFile, kTiedOutputRows, nullptr, Stage::kTiedOutput},
};

constexpr Unread kTextUnread[] = {
    {"lm_head.weight", "model.embed_tokens.weight", kTiedCopy, Needs::kTied},
};
constexpr Unread kUnread[] = {
    {"lm_head.weight", "model.language_model.embed_tokens.weight", kTiedCopy, Needs::kTied},
};

constexpr std::string_view kTextTypes[] = {"gemma4_text"};
constexpr std::string_view kTypes[] = {"gemma4"};
constexpr Needs kForms[] = {Needs::kExpertsFused};
constexpr Needs kHas[] = {Needs::kOwnValues, Needs::kOneKeyValue, Needs::kNoKeys,     Needs::kKeyNorm,
                          Needs::kExperts,   Needs::kNoExperts,   Needs::kLayerInput, Needs::kStandardized,
                          Needs::kAudio,     Needs::kClipped};
constexpr std::span<const Needs> kTextHas = std::span(kHas).first(7);  // all but the towers'

constexpr ConfigStep kTextConfig[] = {
    text({.kv_groups = 4, .head_dim = 256}),
    size(kFfn, "intermediate_size"),
    set(kQkNorm, true),
    set(kSwiglu, false),  // a gated GELU
    flag(kTiedHead, "tie_word_embeddings", true),
    refused("attention_bias"),
    part("gemma4_experts"),
    part("gemma4_layers"),
    layer_experts(),
};
constexpr ConfigStep kVisionConfig[] = {part("gemma4_vision")};
constexpr ConfigStep kConfig[] = {
    inside("text_config", kTextConfig),
    flag(kTiedHead, "tie_word_embeddings", true),
    inside("vision_config", kVisionConfig),
    part("gemma4_audio"),
};

constexpr Family kFamilies[] = {
    {.name = "gemma4_text",
     .model_types = kTextTypes,
     .architecture = "Gemma4ForCausalLM",
     .summary = "Gemma 4, the language model",
     .sections = kText,
     .unread = kTextUnread,
     .expert_forms = kForms,
     .conditions = kTextHas,
     .config = kTextConfig,
     .facts = {"text models of Gemma 4", "", "1, ep2, tp2, tp2 cp2, tp2 ep2, tp2 ep2 etp2, tp4"}},
    {.name = "gemma4",
     .model_types = kTypes,
     .architecture = "Gemma4ForConditionalGeneration",
     .summary = "Gemma 4, with vision, perhaps audio",
     .sections = kWithVision,
     .unread = kUnread,
     .expert_forms = kForms,
     .conditions = kHas,
     .config = kConfig,
     .facts = {"google/gemma-4-26B-A4B-it, google/gemma-4-31B-it, "
               "google/gemma-4-E4B-it, google/gemma-4-E2B-it",
               "", "1, tp2, tp2 cp2, tp4, tp4 ep2"}},
};

}  // namespace

std::span<const Family> gemma4_families() { return kFamilies; }

}  // namespace mckpt::impl
