// Muse Glimmer: attention whose output is gated by a projection of its own, four norms a layer, behind a
// tower that mcore-bridge (ms-swift) takes over from Hugging Face; Megatron-Bridge has no such model.
//
//   model.language_model.layers.0.self_attn.gate_proj           language_model.decoder.layers.0.self_attention.gate_proj
//   model.language_model.layers.0.pre_feedforward_layernorm     language_model.decoder.layers.0.mlp.linear_fc1.layer_norm_weight
//   model.language_model.layers.0.post_feedforward_layernorm    language_model.decoder.layers.0.post_feedforward_layernorm
//
// Peculiar to this family: norms of queries and keys have no weights; the norms of the layers are stored less
// one on both sides, the last norm is not; the language model is registered before the tower.
#include "mappings/models/blocks.h"
#include "mappings/models/config_blocks.h"
#include "mappings/models/families.h"

namespace mckpt::impl {
namespace {

using namespace config_blocks;

constexpr Row kAttention[] = {
    kLinearProj,
    kFusedInputNorm,
    kQkv,
    {"self_attention.gate_proj.weight", "column", {{{"self_attn.gate_proj.weight", "attention hidden"}}}},
};
constexpr Row kDense[] = {
    {"mlp.linear_fc1.layer_norm_weight", "replicate", {{{"pre_feedforward_layernorm.weight", "hidden"}}}},
    kDenseRows[1],
    kDenseRows[2],
    {"post_attention_layernorm.weight", "replicate", {{{"post_attention_layernorm.weight", "hidden"}}}},
    {"post_feedforward_layernorm.weight", "replicate", {{{"post_feedforward_layernorm.weight", "hidden"}}}},
};

constexpr Row kFront[] = {
    copied("patch_embedder.patch_embedding.weight", "hidden channels*temporal_patch*patch*patch"),
    copied("patch_embedder.position_embedding_table.weight", "positions hidden"),
    copied("ln_pre.weight", "hidden"),
    copied("ln_pre.bias", "hidden"),
};
constexpr Row kBlock[] = {
    copied("norm1.weight", "hidden"),
    copied("norm1.bias", "hidden"),
    copied("norm2.weight", "hidden"),
    copied("norm2.bias", "hidden"),
    copied("attn.proj.weight", "hidden attention"),
    copied("attn.proj.bias", "hidden"),
    copied("attn.q_proj.weight", "attention hidden"),
    copied("attn.q_proj.bias", "attention"),
    copied("attn.k_proj.weight", "attention hidden"),
    copied("attn.k_proj.bias", "attention"),
    copied("attn.v_proj.weight", "attention hidden"),
    copied("attn.v_proj.bias", "attention"),
    copied("mlp.fc1.weight", "ffn hidden"),
    copied("mlp.fc1.bias", "ffn"),
    copied("mlp.fc2.weight", "hidden ffn"),
    copied("mlp.fc2.bias", "hidden"),
};
constexpr Row kBack[] = {
    copied("ln_post.weight", "hidden"),
    copied("ln_post.bias", "hidden"),
};
constexpr Row kProjector[] = {
    copied("vision_adapter.fc1.weight", "projector out_hidden"),
    copied("vision_adapter.fc2.weight", "projector projector"),
    copied("vision_projection.weight", "text_hidden projector"),
};

constexpr LayerRows kVisionLayer = {.attention = kBlock};
constexpr LayerRows kLayer = {.attention = kAttention, .dense = kDense};
constexpr std::string_view kLanguage = "language_model.", kText = "model.language_model.";
constexpr std::string_view kLayers = "language_model.decoder.layers.{L}.";
constexpr std::string_view kTextLayers = "model.language_model.layers.{L}.";
constexpr std::string_view kVisual = "visual.vision_tower.", kTower = "model.vision_tower.";
constexpr std::string_view kBlocks = "visual.vision_tower.layers.{L}.";
constexpr std::string_view kTowerBlocks = "model.vision_tower.layers.{L}.";

constexpr Section kSections[] = {
    {Scope::kOnce, kLanguage, kText, kEmbeddingRows},
    {Scope::kLayers, kLayers, kTextLayers, {}, &kLayer},
    {Scope::kOnce, kLanguage, kText, kFinalNormRows, nullptr, Stage::kFinalNorm},
    {Scope::kOnce, kLanguage, "", kOutputRows, nullptr, Stage::kOutput},
    {Scope::kOnce, kLanguage, kText, kTiedOutputRows, nullptr, Stage::kTiedOutput},
    {Scope::kOnce, kVisual, kTower, kFront, nullptr, Stage::kFirst, Tower::kVision},
    {Scope::kLayers, kBlocks, kTowerBlocks, {}, &kVisionLayer, Stage::kFirst, Tower::kVision, false},
    {Scope::kOnce, kVisual, kTower, kBack, nullptr, Stage::kFirst, Tower::kVision},
    {Scope::kOnce, "visual.", "model.", kProjector, nullptr, Stage::kFirst, Tower::kVision},
};

constexpr Unread kUnread[] = {
    {"lm_head.weight", "model.language_model.embed_tokens.weight", kTiedCopy, Needs::kTied},
};

constexpr std::string_view kTypes[] = {"muse_glimmer"};

constexpr ConfigStep kTextConfig[] = {
    text({.kv_groups = 2, .head_dim = 128}),
    all_of(kDenseFfn),
    refused("attention_bias"),
    layers(),
    set(kZeroCentered, true),
};
constexpr ConfigStep kConfig[] = {
    inside("text_config", kTextConfig),
    flag(kTiedHead, "tie_word_embeddings", false),
    part("muse_vision"),
};

constexpr Family kFamilies[] = {
    {.name = "muse_glimmer",
     .model_types = kTypes,
     .architecture = "MuseGlimmerForConditionalGeneration",
     .summary = "Muse Glimmer, with vision",
     .sections = kSections,
     .unread = kUnread,
     .config = kConfig,
     .facts = {"meta-models/Muse-Glimmer-30B", "", "1, tp2, tp2 pp2, tp4"}},
};

}  // namespace

std::span<const Family> muse_glimmer_families() { return kFamilies; }

}  // namespace mckpt::impl
