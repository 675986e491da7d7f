// Qwen3-ASR: the dense language model of Qwen3 behind the audio tower of Qwen3-Omni, which is Hugging
// Face's module. The names are the ones of Qwen3-Omni's thinker, without vision.
//
//   thinker.model.layers.0. ...          thinker.language_model.decoder.layers.0. ...
//   thinker.audio_tower.layers.0. ...    thinker.audio_model.layers.0. ...
//
// The smaller model is tied, which its text_config says. transformers' own form of these models ("-hf",
// without a thinker) is another one, which Megatron-Bridge does not read.
#include "mappings/models/audio.h"
#include "mappings/models/families.h"

namespace mckpt::impl {
namespace {

using namespace config_blocks;

constexpr LayerRows kLayer = {.attention = kAttentionRows, .dense = kDenseRows};
constexpr std::string_view kAudio = "thinker.audio_model.", kAudioTower = "thinker.audio_tower.";
constexpr std::string_view kAudioLayers = "thinker.audio_model.layers.{L}.";
constexpr std::string_view kTowerLayers = "thinker.audio_tower.layers.{L}.";
constexpr std::string_view kLanguage = "thinker.language_model.", kText = "thinker.model.";
constexpr std::string_view kLayers = "thinker.language_model.decoder.layers.{L}.";
constexpr std::string_view kTextLayers = "thinker.model.layers.{L}.";

constexpr Section kSections[] = {
    {Scope::kLayers, kAudioLayers, kTowerLayers, {}, &kConvAudioLayer, Stage::kFirst, Tower::kAudio, false},
    {Scope::kOnce, kAudio, kAudioTower, kConvAudioRows, nullptr, Stage::kFirst, Tower::kAudio},
    {Scope::kOnce, kLanguage, kText, kEmbeddingRows},
    {Scope::kLayers, kLayers, kTextLayers, {}, &kLayer},
    {Scope::kOnce, kLanguage, kText, kFinalNormRows, nullptr, Stage::kFinalNorm},
    {Scope::kOnce, kLanguage, "thinker.", kOutputRows, nullptr, Stage::kOutput},
    {Scope::kOnce, kLanguage, kText, kTiedOutputRows, nullptr, Stage::kTiedOutput},
};

constexpr Unread kUnread[] = {
    {"thinker.lm_head.weight", "thinker.model.embed_tokens.weight", kTiedCopy, Needs::kTied},
};

constexpr std::string_view kTypes[] = {"qwen3_asr"};
constexpr Needs kHas[] = {Needs::kQkNorm};

constexpr ConfigStep kTextConfig[] = {
    text({.kv_groups = 32, .head_dim = 128}),
    all_of(kPlainDecoder),
    set(kQkNorm, true),
    flag(kTiedHead, "tie_word_embeddings", false),
};
constexpr ConfigStep kThinkerConfig[] = {
    inside("text_config", kTextConfig),
    inside("audio_config", kConvAudioConfig),
};
constexpr ConfigStep kConfig[] = {inside("thinker_config", kThinkerConfig)};

constexpr Family kFamilies[] = {
    {.name = "qwen3_asr",
     .model_types = kTypes,
     .architecture = "Qwen3ASRForConditionalGeneration",
     .summary = "Qwen3-ASR, with audio",
     .sections = kSections,
     .unread = kUnread,
     .conditions = kHas,
     .config = kConfig,
     .facts = {"Qwen/Qwen3-ASR-1.7B, Qwen/Qwen3-ASR-0.6B", "", "1, tp2"}},
};

}  // namespace

std::span<const Family> qwen3_asr_families() { return kFamilies; }

}  // namespace mckpt::impl
