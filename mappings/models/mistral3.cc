// Mistral 3 with vision (Mistral Small 3.1 and later, Ministral 3): the language model of Llama behind the
// vision tower of Pixtral and a projector that joins the patches of a square. Both are Hugging Face's
// modules, copied under their names.
//
//   pixels -> vision_tower -> multi_modal_projector (norm, patch_merger, linear_1, linear_2) -> language_model
#include "mappings/models/blocks.h"
#include "mappings/models/config_blocks.h"
#include "mappings/models/families.h"

namespace mckpt::impl {
namespace {

using namespace config_blocks;

constexpr Row kFront[] = {
    copied("patch_conv.weight", "hidden channels patch patch"),
    copied("ln_pre.weight", "hidden"),
};
constexpr Row kBlock[] = {
    copied("attention_norm.weight", "hidden"),
    copied("feed_forward.gate_proj.weight", "ffn hidden"),
    copied("feed_forward.up_proj.weight", "ffn hidden"),
    copied("feed_forward.down_proj.weight", "hidden ffn"),
    copied("attention.k_proj.weight", "attention hidden"),
    copied("attention.v_proj.weight", "attention hidden"),
    copied("attention.q_proj.weight", "attention hidden"),
    copied("attention.o_proj.weight", "hidden attention"),
    copied("ffn_norm.weight", "hidden"),
};
constexpr Row kProjectorRows[] = {
    copied("norm.weight", "hidden"),
    copied("patch_merger.merging_layer.weight", "hidden merged"),
    copied("linear_1.weight", "text_hidden hidden"),
    copied("linear_2.weight", "text_hidden text_hidden"),
};

constexpr LayerRows kVisionLayer = {.attention = kBlock};
constexpr LayerRows kLayer = {.attention = kAttentionRows, .dense = kDenseRows};
constexpr std::string_view kVision = "vision_tower.", kProjector = "multi_modal_projector.";
constexpr std::string_view kBlocks = "vision_tower.transformer.layers.{L}.";
constexpr std::string_view kLanguage = "language_model.", kLayers = "language_model.decoder.layers.{L}.";
constexpr std::string_view kText = "language_model.model.", kTextLayers = "language_model.model.layers.{L}.";

constexpr Section kSections[] = {
    {Scope::kOnce, kVision, kVision, kFront, nullptr, Stage::kFirst, Tower::kVision},
    {Scope::kLayers, kBlocks, kBlocks, {}, &kVisionLayer, Stage::kFirst, Tower::kVision, false},
    {Scope::kOnce, kProjector, kProjector, kProjectorRows, nullptr, Stage::kFirst, Tower::kVision},
    {Scope::kOnce, kLanguage, kText, kEmbeddingRows},
    {Scope::kLayers, kLayers, kTextLayers, {}, &kLayer},
    {Scope::kOnce, kLanguage, kText, kFinalNormRows, nullptr, Stage::kFinalNorm},
    {Scope::kOnce, kLanguage, "language_model.", kOutputRows, nullptr, Stage::kOutput},
    {Scope::kOnce, kLanguage, kText, kTiedOutputRows, nullptr, Stage::kTiedOutput},
};

constexpr Unread kUnread[] = {
    {"language_model.lm_head.weight", "language_model.model.embed_tokens.weight", kTiedCopy, Needs::kTied},
};

constexpr std::string_view kTypes[] = {"mistral3"};

constexpr ConfigStep kMinistralHeads[] = {
    text({.kv_groups = 8, .head_dim = 128, .null_groups_are_heads = true})};
constexpr ConfigStep kTextConfig[] = {
    where("model_type", "ministral3", kMinistralHeads),
    text({.kv_groups = 8, .null_groups_are_heads = true}),
    all_of(kPlainDecoder),
};
constexpr ConfigStep kConfig[] = {
    inside("text_config", kTextConfig),
    flag(kTiedHead, "tie_word_embeddings", true),
    part("pixtral"),
    part("one_feature_layer"),
};

constexpr Family kFamilies[] = {
    {.name = "mistral3",
     .model_types = kTypes,
     .architecture = "Mistral3ForConditionalGeneration",
     .summary = "Mistral Small 3 and Ministral 3, with vision",
     .sections = kSections,
     .unread = kUnread,
     .config = kConfig,
     .facts = {"mistralai/Mistral-Small-3.1-24B-Instruct-2503, mistralai/Ministral-3-8B-Instruct-2512", "fp8",
               "1, tp2, tp4"}},
};

}  // namespace

std::span<const Family> mistral3_families() { return kFamilies; }

}  // namespace mckpt::impl
