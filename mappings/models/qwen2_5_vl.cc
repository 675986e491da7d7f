// Qwen2.5-VL: the language model of Qwen2 behind a vision tower that Megatron takes over from Hugging Face,
// so its tensors keep their names and are whole on every cell.
//
//   model.layers.0.self_attn.q_proj ...     language_model.decoder.layers.0.self_attention.linear_qkv
//   visual.blocks.0.attn.qkv                visual.blocks.0.attn.qkv        rows as in the file, not by group
//
// Peculiar to this family: files have the language model without a prefix ("model."), although a tower is
// beside it.
#include "mappings/models/blocks.h"
#include "mappings/models/config_blocks.h"
#include "mappings/models/families.h"

namespace mckpt::impl {
namespace {

using namespace config_blocks;

constexpr Row kBlock[] = {
    copied("norm1.weight", "hidden"),
    copied("norm2.weight", "hidden"),
    copied("attn.qkv.weight", "qkv hidden"),
    copied("attn.qkv.bias", "qkv"),
    copied("attn.proj.weight", "hidden attention"),
    copied("attn.proj.bias", "hidden"),
    copied("mlp.gate_proj.weight", "ffn hidden"),
    copied("mlp.gate_proj.bias", "ffn"),
    copied("mlp.up_proj.weight", "ffn hidden"),
    copied("mlp.up_proj.bias", "ffn"),
    copied("mlp.down_proj.weight", "hidden ffn"),
    copied("mlp.down_proj.bias", "hidden"),
};

constexpr LayerRows kVisionLayer = {.attention = kBlock};
constexpr LayerRows kLayer = {.attention = kAttentionRows, .dense = kDenseRows};
constexpr std::string_view kLanguage = "language_model.", kLayers = "language_model.decoder.layers.{L}.";
constexpr std::string_view kVisual = "visual.", kBlocks = "visual.blocks.{L}.";

constexpr Section kSections[] = {
    {Scope::kOnce, kVisual, kVisual, kQwen25FrontRows, nullptr, Stage::kFirst, Tower::kVision},
    {Scope::kLayers, kBlocks, kBlocks, {}, &kVisionLayer, Stage::kFirst, Tower::kVision, false},
    {Scope::kOnce, kVisual, kVisual, kQwen25MergerRows, nullptr, Stage::kFirst, Tower::kVision},
    {Scope::kOnce, kLanguage, "model.", kEmbeddingRows},
    {Scope::kLayers, kLayers, "model.layers.{L}.", {}, &kLayer},
    {Scope::kOnce, kLanguage, "model.", kFinalNormRows, nullptr, Stage::kFinalNorm},
    {Scope::kOnce, kLanguage, "", kOutputRows, nullptr, Stage::kOutput},
    {Scope::kOnce, kLanguage, "model.", kTiedOutputRows, nullptr, Stage::kTiedOutput},
};

constexpr Unread kUnread[] = {
    {"lm_head.weight", "model.embed_tokens.weight", kTiedCopy, Needs::kTied},
};

constexpr std::string_view kTypes[] = {"qwen2_5_vl"};
constexpr Needs kHas[] = {Needs::kQkvBias};

// Files of the hub have the language model's entries at the top, those that transformers 5 writes under
// text_config.
constexpr ConfigStep kVisionConfig[] = {part("qwen2_5_vision")};
constexpr ConfigStep kConfig[] = {
    inside_or_here("text_config", kQwen2Config),
    tied_by_either(),
    inside("vision_config", kVisionConfig),
};

constexpr Family kFamilies[] = {
    {.name = "qwen2_5_vl",
     .model_types = kTypes,
     .architecture = "Qwen2_5_VLForConditionalGeneration",
     .summary = "Qwen2.5-VL",
     .sections = kSections,
     .unread = kUnread,
     .conditions = kHas,
     .config = kConfig,
     .facts = {"Qwen/Qwen2.5-VL-7B-Instruct, Qwen/Qwen2.5-VL-72B-Instruct", "awq", "1, tp2, tp2 cp2"}},
};

}  // namespace

std::span<const Family> qwen2_5_vl_families() { return kFamilies; }

}  // namespace mckpt::impl
