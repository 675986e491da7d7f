// Qwen3-Omni: its thinker, which is the language model of Qwen3 with experts behind a vision tower and an
// audio tower. Both towers are Hugging Face's modules, copied under their names; the talker and what makes
// sound of its codes are not part of Megatron's model.
//
//   thinker.model.layers.0. ...          thinker.language_model.decoder.layers.0. ...
//   thinker.lm_head.weight               thinker.language_model.output_layer.weight
//   thinker.visual.blocks.0.attn.qkv     the same: rows as in the file, not by group (Qwen3-VL splits them)
//   thinker.audio_tower.layers.0. ...    thinker.audio_model.layers.0. ...
#include "mappings/models/audio.h"
#include "mappings/models/families.h"

namespace mckpt::impl {
namespace {

using namespace config_blocks;

constexpr Row kDeepstackMerger[] = {
    copied("ln_q.weight", "merged"),
    copied("ln_q.bias", "merged"),
    copied("mlp.0.weight", "merged merged"),
    copied("mlp.0.bias", "merged"),
    copied("mlp.2.weight", "out_hidden merged"),
    copied("mlp.2.bias", "out_hidden"),
};
constexpr Row kMerger[] = {
    copied("ln_q.weight", "hidden"),
    copied("ln_q.bias", "hidden"),
    copied("mlp.0.weight", "merged merged"),
    copied("mlp.0.bias", "merged"),
    copied("mlp.2.weight", "out_hidden merged"),
    copied("mlp.2.bias", "out_hidden"),
};

constexpr LayerRows kLayer = {.attention = kAttentionRows, .dense = kDenseRows, .moe = kQwenMoeRows};
constexpr std::string_view kVisual = "thinker.visual.", kBlocks = "thinker.visual.blocks.{L}.";
constexpr std::string_view kMergers = "thinker.visual.merger_list.{M}.",
                           kLastMerger = "thinker.visual.merger.";
constexpr std::string_view kAudio = "thinker.audio_model.", kAudioTower = "thinker.audio_tower.";
constexpr std::string_view kAudioLayers = "thinker.audio_model.layers.{L}.";
constexpr std::string_view kTowerLayers = "thinker.audio_tower.layers.{L}.";
constexpr std::string_view kLanguage = "thinker.language_model.", kText = "thinker.model.";
constexpr std::string_view kLayers = "thinker.language_model.decoder.layers.{L}.";
constexpr std::string_view kTextLayers = "thinker.model.layers.{L}.";

constexpr Section kSections[] = {
    {Scope::kMergers, kMergers, kMergers, kDeepstackMerger, nullptr, Stage::kFirst, Tower::kVision},
    {Scope::kOnce, kVisual, kVisual, kVisionFrontRows, nullptr, Stage::kFirst, Tower::kVision},
    {Scope::kLayers, kBlocks, kBlocks, {}, &kCopiedVisionLayer, Stage::kFirst, Tower::kVision, false},
    {Scope::kOnce, kLastMerger, kLastMerger, kMerger, nullptr, Stage::kFirst, Tower::kVision},
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

constexpr std::string_view kTypes[] = {"qwen3_omni_moe"};
constexpr Needs kHas[] = {Needs::kQkNorm};

constexpr ConfigStep kThinkerConfig[] = {
    inside("text_config", kQwen3MoeConfig),        no_mtp(),
    flag(kTiedHead, "tie_word_embeddings", false), part("qwen_vision", 1),
    inside("audio_config", kConvAudioConfig),
};
// The talker and the decoder of its codes are models of their own beside the thinker, and Megatron has
// neither.
constexpr ConfigStep kConfig[] = {
    part("no_talker"),
    inside("thinker_config", kThinkerConfig),
};

constexpr Family kFamilies[] = {
    {.name = "qwen3_omni_moe",
     .model_types = kTypes,
     .architecture = "Qwen3OmniMoeForConditionalGeneration",
     .summary = "Qwen3-Omni with experts, vision and audio: the thinker",
     .sections = kSections,
     .unread = kUnread,
     .expert_forms = kQwenExpertForms,
     .conditions = kHas,
     .config = kConfig,
     .facts = {"Qwen/Qwen3-Omni-30B-A3B-Instruct", "", "1, tp2, tp2 cp2, tp4 ep2"}},
};

}  // namespace

std::span<const Family> qwen3_omni_moe_families() { return kFamilies; }

}  // namespace mckpt::impl
