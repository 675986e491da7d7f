// InternVL 3 and 3.5, as transformers has them: a language model of Qwen behind the tower InternViT, which
// mcore-bridge (ms-swift) takes over from Hugging Face with its projector; Megatron-Bridge has no such model.
//
//   vision_tower.encoder.layer.0 ...      visual.vision_tower.encoder.layer.0 ...
//   multi_modal_projector.linear_1        visual.multi_modal_projector.linear_1
//   language_model.model.layers.0 ...     language_model.decoder.layers.0 ...
//
// Peculiar to this family: the language model is any of Qwen2, Qwen3 and Qwen3-MoE, and is registered before
// the tower. Norms of the tower have biases or not, and there is one behind its layers or not.
#include "mappings/models/blocks.h"
#include "mappings/models/config_blocks.h"
#include "mappings/models/families.h"

namespace mckpt::impl {
namespace {

using namespace config_blocks;

constexpr Row kFront[] = {
    copied("embeddings.cls_token", "1 1 hidden"),
    copied("embeddings.position_embeddings", "1 positions hidden"),
    copied("embeddings.patch_embeddings.projection.weight", "hidden channels patch patch"),
    copied("embeddings.patch_embeddings.projection.bias", "hidden"),
};
constexpr Row kBlock[] = {
    copied("lambda_1", "hidden"),
    copied("lambda_2", "hidden"),
    copied("attention.q_proj.weight", "attention hidden"),
    copied("attention.q_proj.bias", "attention", Needs::kQkvBias),
    copied("attention.k_proj.weight", "attention hidden"),
    copied("attention.k_proj.bias", "attention", Needs::kQkvBias),
    copied("attention.v_proj.weight", "attention hidden"),
    copied("attention.v_proj.bias", "attention", Needs::kQkvBias),
    copied("attention.projection_layer.weight", "hidden attention"),
    copied("attention.projection_layer.bias", "hidden"),
    copied("attention.q_norm.weight", "attention", Needs::kQkNorm),
    copied("attention.k_norm.weight", "attention", Needs::kQkNorm),
    copied("mlp.fc1.weight", "ffn hidden"),
    copied("mlp.fc1.bias", "ffn"),
    copied("mlp.fc2.weight", "hidden ffn"),
    copied("mlp.fc2.bias", "hidden"),
    copied("layernorm_before.weight", "hidden"),
    copied("layernorm_before.bias", "hidden", Needs::kTowerBias),
    copied("layernorm_after.weight", "hidden"),
    copied("layernorm_after.bias", "hidden", Needs::kTowerBias),
};
constexpr Row kBack[] = {
    copied("layernorm.weight", "hidden", Needs::kTowerNorm),
    copied("layernorm.bias", "hidden", Needs::kTowerNorm),
};
constexpr Row kProjector[] = {
    copied("layer_norm.weight", "merged"),
    copied("layer_norm.bias", "merged"),
    copied("linear_1.weight", "text_hidden merged"),
    copied("linear_1.bias", "text_hidden"),
    copied("linear_2.weight", "text_hidden text_hidden"),
    copied("linear_2.bias", "text_hidden"),
};

constexpr LayerRows kVisionLayer = {.attention = kBlock};
constexpr LayerRows kLayer = {.attention = kAttentionRows, .dense = kDenseRows, .moe = kQwenMoeRows};
constexpr std::string_view kLanguage = "language_model.", kText = "language_model.model.";
constexpr std::string_view kLayers = "language_model.decoder.layers.{L}.";
constexpr std::string_view kTextLayers = "language_model.model.layers.{L}.";
constexpr std::string_view kVisual = "visual.vision_tower.", kTower = "vision_tower.";
constexpr std::string_view kBlocks = "visual.vision_tower.encoder.layer.{L}.";
constexpr std::string_view kTowerBlocks = "vision_tower.encoder.layer.{L}.";
constexpr std::string_view kMerger = "visual.multi_modal_projector.",
                           kProjectorName = "multi_modal_projector.";

constexpr Section kSections[] = {
    {Scope::kOnce, kLanguage, kText, kEmbeddingRows},
    {Scope::kLayers, kLayers, kTextLayers, {}, &kLayer},
    {Scope::kOnce, kLanguage, kText, kFinalNormRows, nullptr, Stage::kFinalNorm},
    {Scope::kOnce, kLanguage, kLanguage, kOutputRows, nullptr, Stage::kOutput},
    {Scope::kOnce, kLanguage, kText, kTiedOutputRows, nullptr, Stage::kTiedOutput},
    {Scope::kOnce, kVisual, kTower, kFront, nullptr, Stage::kFirst, Tower::kVision},
    {Scope::kLayers, kBlocks, kTowerBlocks, {}, &kVisionLayer, Stage::kFirst, Tower::kVision, false},
    {Scope::kOnce, kVisual, kTower, kBack, nullptr, Stage::kFirst, Tower::kVision},
    {Scope::kOnce, kMerger, kProjectorName, kProjector, nullptr, Stage::kFirst, Tower::kVision},
};

constexpr Unread kUnread[] = {
    {"language_model.lm_head.weight", "language_model.model.embed_tokens.weight", kTiedCopy, Needs::kTied},
};

constexpr std::string_view kTypes[] = {"internvl"};
constexpr Needs kForms[] = {Needs::kExpertsApart, Needs::kExpertsFused};
constexpr Needs kHas[] = {Needs::kQkvBias, Needs::kQkNorm, Needs::kTowerNorm, Needs::kTowerBias};

constexpr ConfigStep kQwen3Config[] = {text({.kv_groups = 32, .head_dim = 128}), all_of(kPlainDecoder),
                                       set(kQkNorm, true)};
constexpr ConfigStep kMoeConfig[] = {text({.kv_groups = 4}), all_of(kSparseDecoder), no_mtp()};
constexpr ConfigStep kTextConfig[] = {
    where("model_type", "qwen2", kQwen2Config),
    where("model_type", "qwen3", kQwen3Config),
    where("model_type", "qwen3_moe", kMoeConfig),
    part("known_decoder"),
};
constexpr ConfigStep kConfig[] = {
    inside("text_config", kTextConfig),
    flag(kTiedHead, "tie_word_embeddings", true),
    part("internvit"),
};

constexpr Family kFamilies[] = {
    {.name = "internvl",
     .model_types = kTypes,
     .architecture = "InternVLForConditionalGeneration",
     .summary = "InternVL 3 and 3.5, with vision",
     .sections = kSections,
     .unread = kUnread,
     .expert_forms = kForms,
     .conditions = kHas,
     .config = kConfig,
     .facts = {"OpenGVLab/InternVL3-8B-hf, OpenGVLab/InternVL3_5-8B-HF, OpenGVLab/InternVL3_5-30B-A3B-HF", "",
               "1, ep2, pp2, tp2, tp2 ep2, tp2 ep2 etp2, tp2 ep4, tp4"}},
};

}  // namespace

std::span<const Family> internvl_families() { return kFamilies; }

}  // namespace mckpt::impl
