// Qwen2.5-Omni: its thinker, which is the language model of Qwen2 behind a vision tower and an audio tower.
// Both towers are Hugging Face's modules, copied under their names; the talker and what makes sound of its
// codes are not part of Megatron's model.
//
//   thinker.model.layers.0. ...          thinker.language_model.decoder.layers.0. ...
//   thinker.visual.blocks.0.attn.q       the same: queries, keys and values are tensors of their own (Qwen2.5-VL has one)
//   thinker.audio_tower.layers.0. ...    thinker.audio_model.layers.0. ...
#include "mappings/models/audio.h"
#include "mappings/models/families.h"

namespace mckpt::impl {
namespace {

using namespace config_blocks;

constexpr Row kBlock[] = {
    copied("norm1.weight", "hidden"),
    copied("norm2.weight", "hidden"),
    copied("attn.q.weight", "attention hidden"),
    copied("attn.q.bias", "attention"),
    copied("attn.k.weight", "attention hidden"),
    copied("attn.k.bias", "attention"),
    copied("attn.v.weight", "attention hidden"),
    copied("attn.v.bias", "attention"),
    copied("attn.proj.weight", "hidden attention"),
    copied("attn.proj.bias", "hidden"),
    copied("mlp.gate_proj.weight", "ffn hidden"),
    copied("mlp.gate_proj.bias", "ffn"),
    copied("mlp.up_proj.weight", "ffn hidden"),
    copied("mlp.up_proj.bias", "ffn"),
    copied("mlp.down_proj.weight", "hidden ffn"),
    copied("mlp.down_proj.bias", "hidden"),
};

// The first row of the last of these is the begin of a sound, the second its end.
constexpr Row kAudioFront[] = {
    copied("conv1.weight", "hidden mel_bins 3"),         copied("conv1.bias", "hidden"),
    copied("conv2.weight", "hidden hidden 3"),           copied("conv2.bias", "hidden"),
    copied("audio_bos_eos_token.weight", "2 audio_out"),
};
constexpr Row kAudioBack[] = {
    copied("ln_post.weight", "hidden"),
    copied("ln_post.bias", "hidden"),
    copied("proj.weight", "audio_out hidden"),
    copied("proj.bias", "audio_out"),
};

constexpr LayerRows kVisionBlock = {.attention = kBlock};
constexpr LayerRows kLayer = {.attention = kAttentionRows, .dense = kDenseRows};
constexpr std::string_view kVisual = "thinker.visual.", kBlocks = "thinker.visual.blocks.{L}.";
constexpr std::string_view kAudio = "thinker.audio_model.", kAudioTower = "thinker.audio_tower.";
constexpr std::string_view kAudioLayers = "thinker.audio_model.layers.{L}.";
constexpr std::string_view kTowerLayers = "thinker.audio_tower.layers.{L}.";
constexpr std::string_view kLanguage = "thinker.language_model.", kText = "thinker.model.";
constexpr std::string_view kLayers = "thinker.language_model.decoder.layers.{L}.";
constexpr std::string_view kTextLayers = "thinker.model.layers.{L}.";

constexpr Section kSections[] = {
    {Scope::kOnce, kVisual, kVisual, kQwen25FrontRows, nullptr, Stage::kFirst, Tower::kVision},
    {Scope::kLayers, kBlocks, kBlocks, {}, &kVisionBlock, Stage::kFirst, Tower::kVision, false},
    {Scope::kOnce, kVisual, kVisual, kQwen25MergerRows, nullptr, Stage::kFirst, Tower::kVision},
    {Scope::kOnce, kAudio, kAudioTower, kAudioFront, nullptr, Stage::kFirst, Tower::kAudio},
    {Scope::kLayers, kAudioLayers, kTowerLayers, {}, &kWhisperLayer, Stage::kFirst, Tower::kAudio, false},
    {Scope::kOnce, kAudio, kAudioTower, kAudioBack, nullptr, Stage::kFirst, Tower::kAudio},
    {Scope::kOnce, kLanguage, kText, kEmbeddingRows},
    {Scope::kLayers, kLayers, kTextLayers, {}, &kLayer},
    {Scope::kOnce, kLanguage, kText, kFinalNormRows, nullptr, Stage::kFinalNorm},
    {Scope::kOnce, kLanguage, "thinker.", kOutputRows, nullptr, Stage::kOutput},
    {Scope::kOnce, kLanguage, kText, kTiedOutputRows, nullptr, Stage::kTiedOutput},
};

constexpr Unread kUnread[] = {
    {"thinker.lm_head.weight", "thinker.model.embed_tokens.weight", kTiedCopy, Needs::kTied},
};

constexpr std::string_view kTypes[] = {"qwen2_5_omni"};
constexpr Needs kHas[] = {Needs::kQkvBias};

// The layers have heads of hidden size / heads, whatever the config says of them.
constexpr ConfigStep kTextConfig[] = {
    text({.kv_groups = 4, .null_groups_are_heads = true}),
    part("head_dim_of_hidden"),
    all_of(kPlainDecoder),
    set(kQkvBias, true),
};
constexpr ConfigStep kAudioConfig[] = {
    part("audio"),
    size_or(member<&ModelConfig::audio, &AudioConfig::out_hidden>, "output_dim", 3584),
};
constexpr ConfigStep kVisionConfig[] = {part("qwen2_5_vision")};
constexpr ConfigStep kThinkerConfig[] = {
    inside("text_config", kTextConfig),
    flag(kTiedHead, "tie_word_embeddings", false),
    inside("vision_config", kVisionConfig),
    inside("audio_config", kAudioConfig),
};
constexpr ConfigStep kConfig[] = {
    part("no_talker"),
    inside("thinker_config", kThinkerConfig),
};

constexpr Family kFamilies[] = {
    {.name = "qwen2_5_omni",
     .model_types = kTypes,
     .architecture = "Qwen2_5OmniForConditionalGeneration",
     .summary = "Qwen2.5-Omni with vision and audio: the thinker",
     .sections = kSections,
     .unread = kUnread,
     .conditions = kHas,
     .config = kConfig,
     .facts = {"Qwen/Qwen2.5-Omni-7B, Qwen/Qwen2.5-Omni-3B", "awq, gptq", "1, tp2"}},
};

}  // namespace

std::span<const Family> qwen2_5_omni_families() { return kFamilies; }

}  // namespace mckpt::impl
