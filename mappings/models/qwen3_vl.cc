// Qwen3-VL, dense and with experts: the language model of Qwen3 after a vision tower with deepstack mergers.
//
//   pixels -> patch_embed -> blocks 0 .. n -> merger            -> as tokens into the language model
//                              |  |  |
//                              '--'--'---- deepstack mergers    -> into its first layers
//
// Megatron-Bridge freezes all but the mergers of the model with experts (kTrained), so a checkpoint of such a
// run packs frozen and trained parameters apart. The language model has no MTP.
#include "mappings/models/blocks.h"
#include "mappings/models/config_blocks.h"
#include "mappings/models/families.h"

namespace mckpt::impl {
namespace {

using namespace config_blocks;

constexpr LayerRows kLayer = {.attention = kAttentionRows, .dense = kDenseRows, .moe = kQwenMoeRows};
constexpr std::string_view kVision = "vision_model.", kVisual = "model.visual.";
constexpr std::string_view kVisionLayers = "vision_model.decoder.layers.{L}.";
constexpr std::string_view kVisualBlocks = "model.visual.blocks.{L}.";
constexpr std::string_view kMergers = "vision_model.decoder.deepstack_merger_list.{M}.";
constexpr std::string_view kVisualMergers = "model.visual.deepstack_merger_list.{M}.";
constexpr std::string_view kMerger = "vision_model.merger.", kVisualMerger = "model.visual.merger.";
constexpr std::string_view kLanguage = "language_model.", kText = "model.language_model.";
constexpr std::string_view kLayers = "language_model.decoder.layers.{L}.";
constexpr std::string_view kTextLayers = "model.language_model.layers.{L}.";

constexpr Section kSections[] = {
    {Scope::kOnce, kVision, kVisual, kVisionFrontRows, nullptr, Stage::kFirst, Tower::kVision},
    {Scope::kLayers, kVisionLayers, kVisualBlocks, {}, &kVisionLayer, Stage::kFirst, Tower::kVision},
    {Scope::kMergers, kMergers, kVisualMergers, kDeepstackRows, nullptr, Stage::kFirst, Tower::kVision},
    {Scope::kOnce, kMerger, kVisualMerger, kMergerRows, nullptr, Stage::kFirst, Tower::kVision},
    {Scope::kOnce, kLanguage, kText, kEmbeddingRows},
    {Scope::kLayers, kLayers, kTextLayers, {}, &kLayer},
    {Scope::kOnce, kLanguage, kText, kFinalNormRows, nullptr, Stage::kFinalNorm},
    {Scope::kOnce, kLanguage, "", kOutputRows, nullptr, Stage::kOutput},
    {Scope::kOnce, kLanguage, kText, kTiedOutputRows, nullptr, Stage::kTiedOutput},
};

// For the model with experts.
constexpr std::string_view kTrained[] = {kMergers, kMerger};

constexpr Unread kUnread[] = {
    {"lm_head.weight", "model.language_model.embed_tokens.weight", kTiedCopy, Needs::kTied},
};

constexpr std::string_view kDense[] = {"qwen3_vl"};
constexpr std::string_view kMoe[] = {"qwen3_vl_moe"};
// Released models have transposed experts; transformers 5 writes them as for all other models.
constexpr Needs kForms[] = {Needs::kExpertsHub, Needs::kExpertsFused, Needs::kExpertsApart};

constexpr Needs kHas[] = {Needs::kQkNorm};

constexpr ConfigStep kTextConfig[] = {
    text({.kv_groups = 32, .head_dim = 128, .null_groups_are_heads = true}),
    all_of(kDenseFfn),
    set(kQkNorm, true),
    refused("attention_bias"),
    layers(),
};
constexpr ConfigStep kMoeTextConfig[] = {text({.kv_groups = 16}), all_of(kSparseDecoder)};
// 1: early vision layers may be fed into the decoder.
constexpr ConfigStep kConfig[] = {
    inside("text_config", kTextConfig),
    part("qwen_vision", 1),
};
constexpr ConfigStep kMoeConfig[] = {
    inside("text_config", kMoeTextConfig),
    part("qwen_vision", 1),
};

constexpr Family kFamilies[] = {
    {.name = "qwen3_vl",
     .model_types = kDense,
     .architecture = "Qwen3VLForConditionalGeneration",
     .summary = "Qwen3-VL, dense",
     .sections = kSections,
     .unread = kUnread,
     .conditions = kHas,
     .config = kConfig,
     .facts = {"Qwen/Qwen3-VL-8B-Instruct", "fp8 blocks", "1, tp2"}},
    {.name = "qwen3_vl_moe",
     .model_types = kMoe,
     .architecture = "Qwen3VLMoeForConditionalGeneration",
     .summary = "Qwen3-VL with experts",
     .sections = kSections,
     .unread = kUnread,
     .expert_forms = kForms,
     .conditions = kHas,
     .trained = kTrained,
     .config = kMoeConfig,
     .facts = {"Qwen/Qwen3-VL-30B-A3B-Instruct", "fp8 blocks", "1, tp2 ep4"}},
};

}  // namespace

std::span<const Family> qwen3_vl_families() { return kFamilies; }

}  // namespace mckpt::impl
