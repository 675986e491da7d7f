// Gemma 3 with vision: the language model of Gemma 3 behind the tower of SigLIP, which is copied, and a
// projector.
//
//   vision_tower -> multi_modal_projector.mm_soft_emb_norm -> mm_input_projection_weight [tower, language] -> language_model
//                                         mm_soft_embed_norm   proj.weight, its transpose, split by rows
//
// Files of the hub have the tower under "vision_tower.vision_model.", files of transformers 5 under
// "vision_tower.".
#include "mappings/models/blocks.h"
#include "mappings/models/config_blocks.h"
#include "mappings/models/families.h"
#include "mappings/models/gemma.h"

namespace mckpt::impl {
namespace {

using namespace config_blocks;

constexpr Row kFront[] = {
    copied("embeddings.patch_embedding.weight", "hidden channels patch patch"),
    copied("embeddings.patch_embedding.bias", "hidden"),
    copied("embeddings.position_embedding.weight", "positions hidden"),
};
constexpr Row kBlock[] = {
    copied("layer_norm1.weight", "hidden"),
    copied("layer_norm1.bias", "hidden"),
    copied("self_attn.k_proj.weight", "attention hidden"),
    copied("self_attn.k_proj.bias", "attention"),
    copied("self_attn.v_proj.weight", "attention hidden"),
    copied("self_attn.v_proj.bias", "attention"),
    copied("self_attn.q_proj.weight", "attention hidden"),
    copied("self_attn.q_proj.bias", "attention"),
    copied("self_attn.out_proj.weight", "hidden attention"),
    copied("self_attn.out_proj.bias", "hidden"),
    copied("layer_norm2.weight", "hidden"),
    copied("layer_norm2.bias", "hidden"),
    copied("mlp.fc1.weight", "ffn hidden"),
    copied("mlp.fc1.bias", "ffn"),
    copied("mlp.fc2.weight", "hidden ffn"),
    copied("mlp.fc2.bias", "hidden"),
};
constexpr Row kBack[] = {
    copied("post_layernorm.weight", "hidden"),
    copied("post_layernorm.bias", "hidden"),
};
constexpr Row kProjector[] = {
    {"mm_soft_embed_norm.weight", "replicate", {{{"mm_soft_emb_norm.weight", "hidden"}}}},
    {"proj.weight", "column_transposed", {{{"mm_input_projection_weight", "hidden text_hidden"}}}},
};

constexpr LayerRows kVisionLayer = {.attention = kBlock};
constexpr LayerRows kLayer = {.attention = kFourNormAttentionRows, .dense = kFourNormDenseRows};
constexpr std::string_view kVision = "vision_tower.", kHubVision = "vision_tower.vision_model.";
constexpr std::string_view kBlocks = "vision_tower.encoder.layers.{L}.";
constexpr std::string_view kHubBlocks = "vision_tower.vision_model.encoder.layers.{L}.";
constexpr std::string_view kProjectorName = "multi_modal_projector.";
constexpr std::string_view kLanguage = "language_model.", kText = "language_model.model.";
constexpr std::string_view kLayers = "language_model.decoder.layers.{L}.";
constexpr std::string_view kTextLayers = "language_model.model.layers.{L}.";

constexpr Section kSections[] = {
    {Scope::kOnce, kVision, kVision, kFront, nullptr, Stage::kFirst, Tower::kVision, true, kHubVision},
    {Scope::kLayers, kBlocks, kBlocks, {}, &kVisionLayer, Stage::kFirst, Tower::kVision, false, kHubBlocks},
    {Scope::kOnce, kVision, kVision, kBack, nullptr, Stage::kFirst, Tower::kVision, true, kHubVision},
    {Scope::kOnce, kProjectorName, kProjectorName, kProjector, nullptr, Stage::kFirst, Tower::kVision},
    {Scope::kOnce, kLanguage, kText, kEmbeddingRows},
    {Scope::kLayers, kLayers, kTextLayers, {}, &kLayer},
    {Scope::kOnce, kLanguage, kText, kFinalNormRows, nullptr, Stage::kFinalNorm},
    {Scope::kOnce, kLanguage, "language_model.", kOutputRows, nullptr, Stage::kOutput},
    {Scope::kOnce, kLanguage, kText, kTiedOutputRows, nullptr, Stage::kTiedOutput},
};

constexpr Unread kUnread[] = {
    {"language_model.lm_head.weight", "language_model.model.embed_tokens.weight", kTiedCopy, Needs::kTied},
};

constexpr std::string_view kTypes[] = {"gemma3"};
constexpr Needs kHas[] = {Needs::kQkNorm};

// Files of the hub have few entries of the language model: the numbers of the 4B model are the defaults of
// the class.
constexpr std::string_view kTextDefaults = R"({"vocab_size": 262208, "hidden_size": 2304,
      "intermediate_size": 9216, "num_hidden_layers": 26, "num_attention_heads": 8, "num_key_value_heads": 4,
      "head_dim": 256})";
constexpr ConfigStep kVisionConfig[] = {part("siglip")};
constexpr ConfigStep kConfig[] = {
    inside("text_config", kGemma3TextConfig, kTextDefaults),
    flag(kTiedHead, "tie_word_embeddings", true),
    inside("vision_config", kVisionConfig),
};

constexpr Family kFamilies[] = {
    {.name = "gemma3",
     .model_types = kTypes,
     .architecture = "Gemma3ForConditionalGeneration",
     .summary = "Gemma 3, with vision",
     .sections = kSections,
     .unread = kUnread,
     .conditions = kHas,
     .config = kConfig,
     .facts = {"google/gemma-3-4b-it, google/gemma-3-27b-it", "", "1, tp2"}},
};

}  // namespace

std::span<const Family> gemma3_vl_families() { return kFamilies; }

}  // namespace mckpt::impl
