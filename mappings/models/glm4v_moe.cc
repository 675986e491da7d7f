// GLM-4.5V: the language model of GLM-4.5 behind a vision tower that Megatron takes over from Hugging Face.
//
//   model.language_model.layers.0. ...      language_model.decoder.layers.0. ...
//   model.visual.blocks.0.attn.qkv          visual.blocks.0.attn.qkv        rows as in the file, not by group
//
// Peculiar to this family: the MLPs of the tower's blocks are as wide as the language model, and only its
// merger has the width that the tower's config calls its own; there are no prediction layers.
#include "mappings/models/config_blocks.h"
#include "mappings/models/deepseek.h"
#include "mappings/models/families.h"

namespace mckpt::impl {
namespace {

using namespace config_blocks;

constexpr Row kFront[] = {
    copied("embeddings.position_embedding.weight", "positions hidden"),
    copied("patch_embed.proj.weight", "hidden channels temporal_patch patch patch"),
    copied("patch_embed.proj.bias", "hidden"),
};
constexpr Row kBlock[] = {
    copied("norm1.weight", "hidden"),
    copied("norm2.weight", "hidden"),
    copied("attn.qkv.weight", "qkv hidden"),
    copied("attn.proj.weight", "hidden attention"),
    copied("mlp.gate_proj.weight", "out_hidden hidden"),
    copied("mlp.up_proj.weight", "out_hidden hidden"),
    copied("mlp.down_proj.weight", "hidden out_hidden"),
};
constexpr Row kBack[] = {
    copied("merger.proj.weight", "out_hidden out_hidden"),
    copied("merger.post_projection_norm.weight", "out_hidden"),
    copied("merger.post_projection_norm.bias", "out_hidden"),
    copied("merger.gate_proj.weight", "ffn out_hidden"),
    copied("merger.up_proj.weight", "ffn out_hidden"),
    copied("merger.down_proj.weight", "out_hidden ffn"),
    copied("post_conv_layernorm.weight", "hidden"),
    copied("downsample.weight", "out_hidden hidden merge merge"),
    copied("downsample.bias", "out_hidden"),
    copied("post_layernorm.weight", "hidden"),
};

constexpr LayerRows kVisionLayer = {.attention = kBlock};
constexpr LayerRows kLayer = {.attention = kAttentionRows, .dense = kDenseRows, .moe = kDeepseekMoeRows};
constexpr std::string_view kVision = "visual.", kVisual = "model.visual.";
constexpr std::string_view kBlocks = "visual.blocks.{L}.", kTheirBlocks = "model.visual.blocks.{L}.";
constexpr std::string_view kLanguage = "language_model.", kText = "model.language_model.";
constexpr std::string_view kLayers = "language_model.decoder.layers.{L}.";
constexpr std::string_view kTextLayers = "model.language_model.layers.{L}.";

constexpr Section kSections[] = {
    {Scope::kOnce, kVision, kVisual, kFront, nullptr, Stage::kFirst, Tower::kVision},
    {Scope::kLayers, kBlocks, kTheirBlocks, {}, &kVisionLayer, Stage::kFirst, Tower::kVision, false},
    {Scope::kOnce, kVision, kVisual, kBack, nullptr, Stage::kFirst, Tower::kVision},
    {Scope::kOnce, kLanguage, kText, kEmbeddingRows},
    {Scope::kLayers, kLayers, kTextLayers, {}, &kLayer},
    {Scope::kOnce, kLanguage, kText, kFinalNormRows, nullptr, Stage::kFinalNorm},
    {Scope::kOnce, kLanguage, "", kOutputRows, nullptr, Stage::kOutput},
    {Scope::kOnce, kLanguage, kText, kTiedOutputRows, nullptr, Stage::kTiedOutput},
};

constexpr Unread kUnread[] = {
    {"lm_head.weight", "model.language_model.embed_tokens.weight", kTiedCopy, Needs::kTied},
};

constexpr std::string_view kTypes[] = {"glm4v_moe"};
constexpr Needs kForms[] = {Needs::kExpertsApart, Needs::kExpertsFused};
constexpr Needs kHas[] = {Needs::kQkvBias, Needs::kQkNorm, Needs::kExpertBias, Needs::kSharedExpert};

constexpr ConfigStep kTextConfig[] = {all_of(kGlm4MoeConfig), flag(kQkvBias, "attention_bias", true)};
constexpr ConfigStep kVisionConfig[] = {part("glm4v_vision")};
constexpr ConfigStep kConfig[] = {
    inside("text_config", kTextConfig),
    no_mtp(),
    tied_by_either(),
    inside("vision_config", kVisionConfig),
};

constexpr Family kFamilies[] = {
    {.name = "glm4v_moe",
     .model_types = kTypes,
     .architecture = "Glm4vMoeForConditionalGeneration",
     .summary = "GLM-4.5V, with experts and vision",
     .sections = kSections,
     .unread = kUnread,
     .expert_forms = kForms,
     .conditions = kHas,
     .config = kConfig,
     .facts = {"zai-org/GLM-4.5V, zai-org/GLM-4.6V", "fp8", "1, tp2, tp2 cp2, tp2 ep2, tp2 ep2 etp2, tp4"}},
};

}  // namespace

std::span<const Family> glm4v_moe_families() { return kFamilies; }

}  // namespace mckpt::impl
