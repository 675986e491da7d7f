// Llama 4 (Scout, Maverick): a mixture of experts beside a shared one, in every layer or in every few, behind
// a tower that mcore-bridge (ms-swift) takes over from Hugging Face; Megatron-Bridge has no such model.
//
//   language_model.model.layers.1.feed_forward.experts.gate_up_proj   language_model.decoder.layers.1.mlp.experts.linear_fc1.weight0 ...
//   vision_model.model.layers.0 ...                                   visual.vision_model.model.layers.0 ...
//
// Peculiar to this family: the file has all experts in one tensor, [experts, in, out]; the width of dense
// layers is intermediate_size_mlp, and intermediate_size the experts'; the language model is registered
// before the tower.
#include "mappings/models/blocks.h"
#include "mappings/models/config_blocks.h"
#include "mappings/models/deepseek.h"
#include "mappings/models/families.h"

namespace mckpt::impl {
namespace {

using namespace config_blocks;

constexpr Row kDense[] = {
    kDenseRows[0],
    {"mlp.linear_fc1.weight",
     "gated_mlp",
     {{{"feed_forward.gate_proj.weight", "ffn hidden"}, {"feed_forward.up_proj.weight", "ffn hidden"}}},
     Needs::kAlways,
     KeySplit::kSwiglu},
    {"mlp.linear_fc2.weight", "row", {{{"feed_forward.down_proj.weight", "hidden ffn"}}}},
};
constexpr Row kMoe[] = {
    kMoeNormRow,
    {"mlp.router.weight", "replicate", {{{"feed_forward.router.weight", "experts hidden"}}}},
    {"mlp.experts.linear_fc1.weight{E}",
     "gated_expert_transposed",
     {{{"feed_forward.experts.gate_up_proj", "experts hidden 2*expert_ffn"}}},
     Needs::kExpertsHub,
     KeySplit::kSwiglu},
    {"mlp.experts.linear_fc2.weight{E}",
     "expert_row_transposed",
     {{{"feed_forward.experts.down_proj", "experts expert_ffn hidden"}}},
     Needs::kExpertsHub},
    {"mlp.shared_experts.linear_fc1.weight",
     "gated_mlp",
     {{{"feed_forward.shared_expert.gate_proj.weight", "shared_ffn hidden"},
       {"feed_forward.shared_expert.up_proj.weight", "shared_ffn hidden"}}},
     Needs::kAlways,
     KeySplit::kSwiglu},
    {"mlp.shared_experts.linear_fc2.weight",
     "row",
     {{{"feed_forward.shared_expert.down_proj.weight", "hidden shared_ffn"}}}},
};

constexpr Row kFront[] = {
    copied("class_embedding", "hidden"),
    copied("positional_embedding_vlm", "positions hidden"),
    copied("patch_embedding.linear.weight", "hidden channels*patch*patch"),
    copied("layernorm_pre.weight", "hidden"),
    copied("layernorm_pre.bias", "hidden"),
    copied("layernorm_post.weight", "hidden"),
    copied("layernorm_post.bias", "hidden"),
};
constexpr Row kBlock[] = {
    copied("self_attn.q_proj.weight", "attention hidden"),
    copied("self_attn.q_proj.bias", "attention"),
    copied("self_attn.k_proj.weight", "attention hidden"),
    copied("self_attn.k_proj.bias", "attention"),
    copied("self_attn.v_proj.weight", "attention hidden"),
    copied("self_attn.v_proj.bias", "attention"),
    copied("self_attn.o_proj.weight", "hidden attention"),
    copied("self_attn.o_proj.bias", "hidden"),
    copied("mlp.fc1.weight", "ffn hidden"),
    copied("mlp.fc1.bias", "ffn"),
    copied("mlp.fc2.weight", "hidden ffn"),
    copied("mlp.fc2.bias", "hidden"),
    copied("input_layernorm.weight", "hidden"),
    copied("input_layernorm.bias", "hidden"),
    copied("post_attention_layernorm.weight", "hidden"),
    copied("post_attention_layernorm.bias", "hidden"),
};
constexpr Row kAdapter[] = {
    copied("vision_adapter.mlp.fc1.weight", "projector ffn"),
    copied("vision_adapter.mlp.fc2.weight", "projector projector"),
};
constexpr Row kProjector[] = {
    copied("linear_1.weight", "text_hidden projector"),
};

constexpr LayerRows kVisionLayer = {.attention = kBlock};
constexpr LayerRows kLayer = {.attention = kAttentionRows, .dense = kDense, .moe = kMoe};
constexpr std::string_view kLanguage = "language_model.", kText = "language_model.model.";
constexpr std::string_view kLayers = "language_model.decoder.layers.{L}.";
constexpr std::string_view kTextLayers = "language_model.model.layers.{L}.";
constexpr std::string_view kVisual = "visual.vision_model.", kTower = "vision_model.";
constexpr std::string_view kBlocks = "visual.vision_model.model.layers.{L}.";
constexpr std::string_view kTowerBlocks = "vision_model.model.layers.{L}.";
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
    {Scope::kOnce, kVisual, kTower, kAdapter, nullptr, Stage::kFirst, Tower::kVision},
    {Scope::kOnce, kMerger, kProjectorName, kProjector, nullptr, Stage::kFirst, Tower::kVision},
};

constexpr Unread kUnread[] = {
    {"language_model.lm_head.weight", "language_model.model.embed_tokens.weight", kTiedCopy, Needs::kTied},
};

constexpr std::string_view kTypes[] = {"llama4"};
constexpr Needs kForms[] = {Needs::kExpertsHub};

constexpr ConfigStep kTextConfig[] = {
    text({.kv_groups = 8, .head_dim = 128}),
    size(kFfn, "intermediate_size_mlp"),
    size(kMoeFfn, "intermediate_size"),
    same(kSharedFfn, kMoeFfn),
    activation(),
    refused("attention_bias"),
    flag(kTiedHead, "tie_word_embeddings", false),
    experts("num_local_experts"),
    layers(),
    part("llama4_layers"),
    layer_experts(),
};
constexpr ConfigStep kConfig[] = {
    inside("text_config", kTextConfig),
    part("llama4_vision"),
};

constexpr Family kFamilies[] = {
    {.name = "llama4",
     .model_types = kTypes,
     .architecture = "Llama4ForConditionalGeneration",
     .summary = "Llama 4, with vision",
     .sections = kSections,
     .unread = kUnread,
     .expert_forms = kForms,
     .config = kConfig,
     .facts = {"meta-llama/Llama-4-Scout-17B-16E-Instruct, meta-llama/Llama-4-Maverick-17B-128E-Instruct", "",
               "1, tp2, tp2 ep2, tp2 ep2 etp2, tp2 ep4, tp2 pp2 ep2"}},
};

}  // namespace

std::span<const Family> llama4_families() { return kFamilies; }

}  // namespace mckpt::impl
