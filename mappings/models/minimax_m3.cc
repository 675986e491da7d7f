// MiniMax-M3 with vision: dense layers, then sparse attention with experts, behind a vision tower, a
// projector and a merger of patches that are Hugging Face's modules.
//
//   language_model.model.layers.1.self_attn.q_proj ...   language_model.decoder.layers.1.self_attention.linear_qkv
//   language_model.model.layers.1.self_attn.index_q_proj lightning_indexers.1.q_proj
//
// Peculiar to this family: the indexers of sparse layers are registered behind the language model, and keep
// the layer's number of the whole model; the router and the patch embedding stay fp32 in a model of bf16.
#include "mappings/models/blocks.h"
#include "mappings/models/config_blocks.h"
#include "mappings/models/families.h"

namespace mckpt::impl {
namespace {

using namespace config_blocks;

constexpr Row kMoe[] = {
    {"pre_mlp_layernorm.weight", "replicate", {{{"post_attention_layernorm.weight", "hidden"}}}},
    {.megatron = "mlp.router.weight",
     .rule = "replicate",
     .sources = {{{"block_sparse_moe.gate.weight", "experts hidden"}}},
     .fp32 = true},
    {.megatron = "mlp.router.expert_bias",
     .rule = "replicate",
     .sources = {{{"block_sparse_moe.e_score_correction_bias", "experts"}}},
     .needs = Needs::kExpertBias,
     .buffer = true},
    {"mlp.experts.linear_fc1.weight{E}",
     "gated_mlp",
     {{{"block_sparse_moe.experts.{E}.w1.weight", "expert_ffn hidden"},
       {"block_sparse_moe.experts.{E}.w3.weight", "expert_ffn hidden"}}},
     Needs::kExpertsApart,
     KeySplit::kSwiglu},
    {"mlp.experts.linear_fc2.weight{E}",
     "row",
     {{{"block_sparse_moe.experts.{E}.w2.weight", "hidden expert_ffn"}}},
     Needs::kExpertsApart},
    {"mlp.shared_experts.linear_fc1.weight",
     "gated_mlp",
     {{{"block_sparse_moe.shared_experts.gate_proj.weight", "shared_ffn hidden"},
       {"block_sparse_moe.shared_experts.up_proj.weight", "shared_ffn hidden"}}},
     Needs::kSharedExpert,
     KeySplit::kSwiglu},
    {"mlp.shared_experts.linear_fc2.weight",
     "row",
     {{{"block_sparse_moe.shared_experts.down_proj.weight", "hidden shared_ffn"}}},
     Needs::kSharedExpert},
};

constexpr Row kIndexer[] = {
    {"q_proj.weight", "replicate", {{{"index_q_proj.weight", "indexer_q hidden"}}}},
    {"k_proj.weight", "replicate", {{{"index_k_proj.weight", "indexer_dim hidden"}}}},
    {"q_norm.weight", "replicate", {{{"index_q_norm.weight", "indexer_dim"}}}},
    {"k_norm.weight", "replicate", {{{"index_k_norm.weight", "indexer_dim"}}}},
};

constexpr Row kFront[] = {
    {.megatron = "embeddings.patch_embedding.weight",
     .rule = "replicate",
     .sources = {{{"embeddings.patch_embedding.weight", "hidden channels temporal_patch patch patch"}}},
     .fp32 = true},
    copied("pre_layrnorm.weight", "hidden"),
    copied("pre_layrnorm.bias", "hidden"),
};
constexpr Row kBlock[] = {
    copied("layer_norm1.weight", "hidden"),
    copied("layer_norm1.bias", "hidden"),
    copied("self_attn.q_proj.weight", "attention hidden"),
    copied("self_attn.q_proj.bias", "attention"),
    copied("self_attn.k_proj.weight", "attention hidden"),
    copied("self_attn.k_proj.bias", "attention"),
    copied("self_attn.v_proj.weight", "attention hidden"),
    copied("self_attn.v_proj.bias", "attention"),
    copied("self_attn.out_proj.weight", "hidden attention"),
    copied("self_attn.out_proj.bias", "hidden"),
    copied("layer_norm2.weight", "hidden"),
    copied("layer_norm2.bias", "hidden"),
    copied("mlp.fc1.weight", "ffn hidden"),
    copied("mlp.fc1.bias", "ffn"),
    copied("mlp.fc2.weight", "hidden ffn"),
    copied("mlp.fc2.bias", "hidden"),
};
constexpr Row kProjector[] = {
    copied("multi_modal_projector.linear_1.weight", "projector hidden"),
    copied("multi_modal_projector.linear_1.bias", "projector"),
    copied("multi_modal_projector.linear_2.weight", "text_hidden projector"),
    copied("multi_modal_projector.linear_2.bias", "text_hidden"),
    copied("patch_merge_mlp.linear_1.weight", "projector merged_text"),
    copied("patch_merge_mlp.linear_1.bias", "projector"),
    copied("patch_merge_mlp.linear_2.weight", "text_hidden projector"),
    copied("patch_merge_mlp.linear_2.bias", "text_hidden"),
};

constexpr LayerRows kVisionLayer = {.attention = kBlock};
constexpr LayerRows kLayer = {
    .attention = kAttentionRows, .sparse_attention = kAttentionRows, .dense = kDenseRows, .moe = kMoe};
constexpr LayerRows kIndexerLayer = {.sparse_attention = kIndexer};

constexpr std::string_view kVision = "vision_tower.vision_model.";
constexpr std::string_view kBlocks = "vision_tower.vision_model.encoder.layers.{L}.";
constexpr std::string_view kLanguage = "language_model.", kLayers = "language_model.decoder.layers.{L}.";
constexpr std::string_view kText = "language_model.model.", kTextLayers = "language_model.model.layers.{L}.";
constexpr std::string_view kIndexers = "lightning_indexers.{L}.";
constexpr std::string_view kTheirIndexers = "language_model.model.layers.{L}.self_attn.";

constexpr Section kSections[] = {
    {Scope::kOnce, kVision, kVision, kFront, nullptr, Stage::kFirst, Tower::kVision},
    {Scope::kLayers, kBlocks, kBlocks, {}, &kVisionLayer, Stage::kFirst, Tower::kVision, false},
    {Scope::kOnce, "", "", kProjector, nullptr, Stage::kFirst, Tower::kVision},
    {Scope::kOnce, kLanguage, kText, kEmbeddingRows},
    {Scope::kLayers, kLayers, kTextLayers, {}, &kLayer},
    {Scope::kOnce, kLanguage, kText, kFinalNormRows, nullptr, Stage::kFinalNorm},
    {Scope::kOnce, kLanguage, "language_model.", kOutputRows, nullptr, Stage::kOutput},
    {Scope::kOnce, kLanguage, kText, kTiedOutputRows, nullptr, Stage::kTiedOutput},
    {Scope::kLayers, kIndexers, kTheirIndexers, {}, &kIndexerLayer, Stage::kFirst, Tower::kText, false},
};

constexpr Unread kUnread[] = {
    {"language_model.lm_head.weight", "language_model.model.embed_tokens.weight", kTiedCopy, Needs::kTied},
};

constexpr std::string_view kTypes[] = {"minimax_m3_vl"};
constexpr Needs kForms[] = {Needs::kExpertsApart};
constexpr Needs kHas[] = {Needs::kQkNorm, Needs::kExpertBias, Needs::kSharedExpert};

constexpr ConfigStep kDecoderConfig[] = {
    text({.kv_groups = 4, .head_dim = 128}),
    set(kQkNorm, true),
    set(kZeroCentered, true),
    size_or(kFfn, "dense_intermediate_size", 12288),
};
constexpr ConfigStep kLayerConfig[] = {
    layers(kAttentionAndExperts),
    part("minimax_layers"),
    experts("num_local_experts"),
    size(kMoeFfn, "intermediate_size"),
    count_or(kSharedFfn, "shared_intermediate_size", 3072),
    set(kExpertBias, true),
    layer_experts(),
};
constexpr ConfigStep kConfig[] = {
    inside("text_config", kDecoderConfig),
    tied_by_either(),
    inside("text_config", kLayerConfig),
    part("minimax_vision"),
};

constexpr Family kFamilies[] = {
    {.name = "minimax_m3_vl",
     .model_types = kTypes,
     .architecture = "MiniMaxM3SparseForConditionalGeneration",
     .summary = "MiniMax-M3 with experts, sparse attention and vision",
     .sections = kSections,
     .unread = kUnread,
     .expert_forms = kForms,
     .conditions = kHas,
     .config = kConfig,
     .facts = {"MiniMaxAI/MiniMax-M3", "", "1, tp2, tp2 cp2, tp4 ep2"}},
};

}  // namespace

std::span<const Family> minimax_m3_families() { return kFamilies; }

}  // namespace mckpt::impl
