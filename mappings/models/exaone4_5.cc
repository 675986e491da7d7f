// EXAONE 4.5: the language model of EXAONE 4 behind a vision tower, both of Megatron's own modules, so that
// the tower is split over the cells as the language model is.
//
//   model.language_model.layers.0. ...   language_model.decoder.layers.0. ...
//   model.visual.blocks.0.attn.qkv       vision_model.decoder.layers.0.self_attention.linear_qkv      by group
//   model.visual.blocks.0.mlp.gate_proj  vision_model.decoder.layers.0.mlp.linear_fc1                 biases too
//   mtp.layers.0. ...                    language_model.mtp.layers.0.mtp_model_layer. ...
//
// Peculiar to this family: keys and values of the tower are in groups, which Megatron does not cut; the
// tower's MLP is gated.
#include "mappings/models/families.h"
#include "mappings/models/post_norm.h"

namespace mckpt::impl {
namespace {

using namespace config_blocks;

constexpr Row kFront[] = {
    {"patch_embed.proj.weight",
     "replicate",
     {{{"patch_embed.proj.weight", "hidden channels temporal_patch patch patch"}}}},
};
constexpr Row kVisionAttention[] = {
    {"self_attention.linear_proj.weight", "row", {{{"attn.proj.weight", "hidden attention"}}}},
    {"self_attention.linear_proj.bias", "replicate", {{{"attn.proj.bias", "hidden"}}}},
    {"self_attention.linear_qkv.layer_norm_weight", "replicate", {{{"norm1.weight", "hidden"}}}},
    {"self_attention.linear_qkv.weight", "qkv_joined", {{{"attn.qkv.weight", "qkv hidden"}}}},
    {"self_attention.linear_qkv.bias", "qkv_joined", {{{"attn.qkv.bias", "qkv"}}}},
};
constexpr Row kVisionDense[] = {
    {"mlp.linear_fc1.layer_norm_weight", "replicate", {{{"norm2.weight", "hidden"}}}},
    kGatedFc1,
    {"mlp.linear_fc1.bias",
     "gated_mlp",
     {{{"mlp.gate_proj.bias", "ffn"}, {"mlp.up_proj.bias", "ffn"}}},
     Needs::kAlways,
     KeySplit::kSwiglu},
    kFc2,
    {"mlp.linear_fc2.bias", "replicate", {{{"mlp.down_proj.bias", "hidden"}}}},
};
constexpr Row kMerger[] = {
    {"patch_norm.weight", "replicate", {{{"ln_q.weight", "hidden"}}}},
    {"linear_fc1.weight", "column", {{{"mlp.0.weight", "merged merged"}}}},
    {"linear_fc1.bias", "column", {{{"mlp.0.bias", "merged"}}}},
    {"linear_fc2.weight", "row", {{{"mlp.2.weight", "out_hidden merged"}}}},
    {"linear_fc2.bias", "replicate", {{{"mlp.2.bias", "out_hidden"}}}},
};

constexpr LayerRows kVisionBlock = {.attention = kVisionAttention, .dense = kVisionDense};
constexpr std::string_view kVision = "vision_model.", kVisual = "model.visual.";
constexpr std::string_view kBlocks = "vision_model.decoder.layers.{L}.",
                           kVisualBlocks = "model.visual.blocks.{L}.";
constexpr std::string_view kLastMerger = "vision_model.merger.", kVisualMerger = "model.visual.merger.";
constexpr std::string_view kLanguage = "language_model.", kText = "model.language_model.";
constexpr std::string_view kLayers = "language_model.decoder.layers.{L}.";
constexpr std::string_view kTextLayers = "model.language_model.layers.{L}.";
constexpr std::string_view kMtp = "language_model.mtp.layers.{M}.";
constexpr std::string_view kMtpLayer = "language_model.mtp.layers.{M}.mtp_model_layer.";

constexpr Section kSections[] = {
    {Scope::kOnce, kVision, kVisual, kFront, nullptr, Stage::kFirst, Tower::kVision},
    {Scope::kLayers, kBlocks, kVisualBlocks, {}, &kVisionBlock, Stage::kFirst, Tower::kVision},
    {Scope::kOnce, kLastMerger, kVisualMerger, kMerger, nullptr, Stage::kFirst, Tower::kVision},
    {Scope::kOnce, kLanguage, kText, kEmbeddingRows, nullptr, Stage::kFirstAndMtp},
    {Scope::kLayers, kLayers, kTextLayers, {}, &kExaoneLayer},
    {Scope::kOnce, kLanguage, kText, kFinalNormRows, nullptr, Stage::kFinalNorm},
    {Scope::kMtpHead, kMtp, "mtp.", kQwenMtpHeadRows, nullptr, Stage::kMtp},
    {Scope::kMtpLayers, kMtpLayer, "mtp.layers.{M}.", {}, &kExaoneLayer, Stage::kMtp},
    {Scope::kMtpTail, kMtp, "mtp.", kQwenMtpTailRows, nullptr, Stage::kMtp},
    {Scope::kOnce, kLanguage, "", kOutputRows, nullptr, Stage::kOutput},
    {Scope::kOnce, kLanguage, kText, kTiedOutputRows, nullptr, Stage::kTiedOutput},
};

constexpr Unread kUnread[] = {
    {"lm_head.weight", "model.language_model.embed_tokens.weight", kTiedCopy, Needs::kTied},
};

constexpr std::string_view kTypes[] = {"exaone4_5"};

constexpr ConfigStep kTextConfig[] = {
    all_of(kExaone4Config),
    mtp(1),
    set(kLayersApart, true),
    set(kNoContextParallel, true),
};
constexpr ConfigStep kVisionConfig[] = {part("exaone4_5_vision")};
constexpr ConfigStep kConfig[] = {
    inside("text_config", kTextConfig),
    flag(kTiedHead, "tie_word_embeddings", false),
    inside("vision_config", kVisionConfig),
};

constexpr Family kFamilies[] = {
    {.name = "exaone4_5",
     .model_types = kTypes,
     .architecture = "Exaone4_5_ForConditionalGeneration",
     .summary = "EXAONE 4.5, with vision",
     .sections = kSections,
     .unread = kUnread,
     .config = kConfig,
     .facts = {"LGAI-EXAONE/EXAONE-4.5-33B", "", "1, tp2"}},
};

}  // namespace

std::span<const Family> exaone4_5_families() { return kFamilies; }

}  // namespace mckpt::impl
