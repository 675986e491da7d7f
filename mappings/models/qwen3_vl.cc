// Qwen3-VL, dense and with experts: the language model of Qwen3 after a vision tower with deepstack mergers.
//
//   pixels -> patch_embed -> blocks 0 .. n -> merger            -> as tokens into the language model
//                              |  |  |
//                              '--'--'---- deepstack mergers    -> into its first layers
//
// Megatron-Bridge freezes all but the mergers of the model with experts (kTrained), so a checkpoint of such a
// run packs frozen and trained parameters apart. The language model has no MTP.
#include "mappings/models/blocks.h"
#include "mappings/models/families.h"

namespace mckpt::impl {
namespace {

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

constexpr Needs kDenseHas[] = {Needs::kQkvBias, Needs::kQkNorm};
constexpr Needs kMoeHas[] = {Needs::kQkNorm};

constexpr Family kFamilies[] = {
    {"qwen3_vl",
     kDense,
     "Qwen3VLForConditionalGeneration",
     "Qwen3-VL, dense",
     kSections,
     kUnread,
     {},
     kDenseHas},
    {"qwen3_vl_moe", kMoe, "Qwen3VLMoeForConditionalGeneration", "Qwen3-VL with experts", kSections, kUnread,
     kForms, kMoeHas, kTrained},
};

}  // namespace

std::span<const Family> qwen3_vl_families() { return kFamilies; }

}  // namespace mckpt::impl
