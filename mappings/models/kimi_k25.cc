// Kimi K2.5, K2.6 and K2.7 with vision: the language model of Kimi K2 behind the tower MoonViT and a merger
// of patches, which are Hugging Face's modules, copied under their names. Releases have the routed experts as
// INT4.
//
//   vision_tower.patch_embed, encoder.blocks.0, ... -> mm_projector (pre_norm, proj.0, proj.2) -> language_model
//
// Peculiar to this family: the language model has a prefix in the file, and no layers for prediction; the
// table of positions has two dimensions; a padded vocabulary is a multiple of 1280 rows a cell.
#include "mappings/models/config_blocks.h"
#include "mappings/models/deepseek.h"
#include "mappings/models/families.h"

namespace mckpt::impl {
namespace {

using namespace config_blocks;

constexpr Row kPatches[] = {
    copied("proj.weight", "hidden channels patch patch"),
    copied("proj.bias", "hidden"),
    copied("pos_emb.weight", "rows columns hidden"),
};
constexpr Row kBlock[] = {
    copied("norm0.weight", "hidden"),         copied("norm0.bias", "hidden"),
    copied("norm1.weight", "hidden"),         copied("norm1.bias", "hidden"),
    copied("mlp.fc0.weight", "ffn hidden"),   copied("mlp.fc0.bias", "ffn"),
    copied("mlp.fc1.weight", "hidden ffn"),   copied("mlp.fc1.bias", "hidden"),
    copied("wqkv.weight", "3*hidden hidden"), copied("wqkv.bias", "3*hidden"),
    copied("wo.weight", "hidden hidden"),     copied("wo.bias", "hidden"),
};
constexpr Row kFinalNorm[] = {
    copied("encoder.final_layernorm.weight", "hidden"),
    copied("encoder.final_layernorm.bias", "hidden"),
};
constexpr Row kProjector[] = {
    copied("pre_norm.weight", "out_hidden"),          copied("pre_norm.bias", "out_hidden"),
    copied("proj.0.weight", "projector projector"),   copied("proj.0.bias", "projector"),
    copied("proj.2.weight", "text_hidden projector"), copied("proj.2.bias", "text_hidden"),
};

constexpr LayerRows kVisionLayer = {.attention = kBlock};
constexpr LayerRows kLayer = {
    .latent_attention = kLatentAttentionRows, .dense = kDenseRows, .moe = kDeepseekMoeRows};
constexpr std::string_view kVision = "vision_tower.", kPatchEmbed = "vision_tower.patch_embed.";
constexpr std::string_view kBlocks = "vision_tower.encoder.blocks.{L}.", kMerger = "mm_projector.";
constexpr std::string_view kLanguage = "language_model.", kLayers = "language_model.decoder.layers.{L}.";
constexpr std::string_view kText = "language_model.model.", kTextLayers = "language_model.model.layers.{L}.";

constexpr Section kSections[] = {
    {Scope::kOnce, kPatchEmbed, kPatchEmbed, kPatches, nullptr, Stage::kFirst, Tower::kVision},
    {Scope::kLayers, kBlocks, kBlocks, {}, &kVisionLayer, Stage::kFirst, Tower::kVision, false},
    {Scope::kOnce, kVision, kVision, kFinalNorm, nullptr, Stage::kFirst, Tower::kVision},
    {Scope::kOnce, kMerger, kMerger, kProjector, nullptr, Stage::kFirst, Tower::kVision},
    {Scope::kOnce, kLanguage, kText, kEmbeddingRows},
    {Scope::kLayers, kLayers, kTextLayers, {}, &kLayer},
    {Scope::kOnce, kLanguage, kText, kFinalNormRows, nullptr, Stage::kFinalNorm},
    {Scope::kOnce, kLanguage, "language_model.", kOutputRows, nullptr, Stage::kOutput},
    {Scope::kOnce, kLanguage, kText, kTiedOutputRows, nullptr, Stage::kTiedOutput},
};

constexpr Unread kUnread[] = {
    {"language_model.lm_head.weight", "language_model.model.embed_tokens.weight", kTiedCopy, Needs::kTied},
    {"language_model.model.layers.{L}.self_attn.rotary_emb.inv_freq", "", kRotary},
};

constexpr std::string_view kTypes[] = {"kimi_k25"};
constexpr Needs kForms[] = {Needs::kExpertsApart, Needs::kExpertsFused};
constexpr Needs kHas[] = {Needs::kQueryLora, Needs::kNoQueryLora, Needs::kExpertBias, Needs::kSharedExpert};

constexpr ConfigStep kTextConfig[] = {
    query_rank(1536),
    all_of(kLatentDecoder),
    layers({Mixer::kLatentAttention, Ffn::kDense}),
    part("every_few_experts", 3),
    layer_experts(),
    no_mtp(),
};
constexpr ConfigStep kConfig[] = {
    inside("text_config", kTextConfig),
    tied(),
    part("moonvit"),
};

constexpr Family kFamilies[] = {
    {.name = "kimi_k25",
     .model_types = kTypes,
     .architecture = "KimiK25ForConditionalGeneration",
     .summary = "Kimi K2.5, K2.6 and K2.7, with vision",
     .sections = kSections,
     .unread = kUnread,
     .expert_forms = kForms,
     .conditions = kHas,
     .vocab_divisor = 1280,
     .config = kConfig,
     .facts = {"moonshotai/Kimi-K2.5, moonshotai/Kimi-K2.6", "int4", "1, tp2, tp2 ep2, tp2 ep4"}},
};

}  // namespace

std::span<const Family> kimi_k25_families() { return kFamilies; }

}  // namespace mckpt::impl
