// Qwen2-Audio: the language model of Qwen2 behind an audio tower (Whisper's encoder) and a projector, both
// copied under their names.
//
//   frequencies -> conv1, conv2 -> + embed_positions -> layers -> layer_norm -> multi_modal_projector -> language_model
//
// Peculiar to this family: keys of the tower have no bias. Files of the hub say "language_model.model.",
// files that transformers 5.12 saves "language_model.model.model.".
#include "mappings/models/audio.h"
#include "mappings/models/families.h"

namespace mckpt::impl {
namespace {

using namespace config_blocks;

constexpr Row kFront[] = {
    copied("conv1.weight", "hidden mel_bins 3"),
    copied("conv1.bias", "hidden"),
    copied("conv2.weight", "hidden hidden 3"),
    copied("conv2.bias", "hidden"),
    copied("embed_positions.weight", "audio_positions hidden"),
};
constexpr Row kBack[] = {
    copied("layer_norm.weight", "hidden"),
    copied("layer_norm.bias", "hidden"),
};
constexpr Row kProjectorRows[] = {
    copied("linear.weight", "text_hidden hidden"),
    copied("linear.bias", "text_hidden"),
};

constexpr LayerRows kLayer = {.attention = kAttentionRows, .dense = kDenseRows};
constexpr std::string_view kAudio = "audio_tower.", kAudioLayers = "audio_tower.layers.{L}.";
constexpr std::string_view kProjector = "multi_modal_projector.";
constexpr std::string_view kLanguage = "language_model.", kLayers = "language_model.decoder.layers.{L}.";
constexpr std::string_view kText = "language_model.model.", kTextLayers = "language_model.model.layers.{L}.";
constexpr std::string_view kNewText = "language_model.model.model.";
constexpr std::string_view kNewTextLayers = "language_model.model.model.layers.{L}.";

constexpr Section kSections[] = {
    {Scope::kOnce, kAudio, kAudio, kFront, nullptr, Stage::kFirst, Tower::kAudio},
    {Scope::kLayers, kAudioLayers, kAudioLayers, {}, &kWhisperLayer, Stage::kFirst, Tower::kAudio, false},
    {Scope::kOnce, kAudio, kAudio, kBack, nullptr, Stage::kFirst, Tower::kAudio},
    {Scope::kOnce, kProjector, kProjector, kProjectorRows, nullptr, Stage::kFirst, Tower::kAudio},
    {.megatron = kLanguage, .hugging_face = kText, .rows = kEmbeddingRows, .also = kNewText},
    {.scope = Scope::kLayers,
     .megatron = kLayers,
     .hugging_face = kTextLayers,
     .layer = &kLayer,
     .also = kNewTextLayers},
    {.megatron = kLanguage,
     .hugging_face = kText,
     .rows = kFinalNormRows,
     .stage = Stage::kFinalNorm,
     .also = kNewText},
    {.megatron = kLanguage,
     .hugging_face = "language_model.",
     .rows = kOutputRows,
     .stage = Stage::kOutput,
     .also = "language_model.model."},
    {.megatron = kLanguage,
     .hugging_face = kText,
     .rows = kTiedOutputRows,
     .stage = Stage::kTiedOutput,
     .also = kNewText},
};

constexpr Unread kUnread[] = {
    {"language_model.lm_head.weight", "language_model.model.embed_tokens.weight", kTiedCopy, Needs::kTied},
};

constexpr std::string_view kTypes[] = {"qwen2_audio"};
constexpr Needs kHas[] = {Needs::kQkvBias};

constexpr ConfigStep kAudioConfig[] = {part("audio")};
constexpr std::string_view kTextDefaults = R"({"vocab_size": 151936, "hidden_size": 4096,
      "intermediate_size": 22016, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32})";
constexpr ConfigStep kConfig[] = {
    inside("text_config", kQwen2Config, kTextDefaults),
    set(kTiedHead, false),
    inside("audio_config", kAudioConfig),
};

constexpr Family kFamilies[] = {
    {.name = "qwen2_audio",
     .model_types = kTypes,
     .architecture = "Qwen2AudioForConditionalGeneration",
     .summary = "Qwen2-Audio",
     .sections = kSections,
     .unread = kUnread,
     .conditions = kHas,
     .config = kConfig,
     .facts = {"Qwen/Qwen2-Audio-7B-Instruct", "", "1, tp2, tp4"}},
};

}  // namespace

std::span<const Family> qwen2_audio_families() { return kFamilies; }

}  // namespace mckpt::impl
