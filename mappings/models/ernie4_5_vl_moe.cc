// ERNIE 4.5 VL: the language model of ERNIE 4.5 with two pools of experts in each layer, one for text and
// one for what the vision tower gives, behind a vision tower and a resampler that are Hugging Face's
// modules. Files count the experts of the second pool on ({S} = experts + E), and have the routers
// transposed and the biases of both pools in one matrix.
//
//   mlp.gate.weight [hidden, experts]     mlp.text_moe_layer.router.weight [experts, hidden]
//   mlp.gate.weight_1                     mlp.vision_moe_layer.router.weight
//   mlp.experts.3. ...                    mlp.text_moe_layer.experts.local_experts.3. ...
//   mlp.experts.67. ... of 64 a pool      mlp.vision_moe_layer.experts.local_experts.3. ...
//
// Peculiar to this family: the experts are modules of their own, which Megatron-FSDP neither counts over
// its ranks nor splits into gate and up.
#include "mappings/models/config_blocks.h"
#include "mappings/models/deepseek.h"
#include "mappings/models/families.h"

namespace mckpt::impl {
namespace {

using namespace config_blocks;

constexpr Row kMoe[] = {
    kMoeNormRow,
    {"mlp.text_moe_layer.router.weight", "replicate_transposed", {{{"mlp.gate.weight", "hidden experts"}}}},
    {.megatron = "mlp.text_moe_layer.router.expert_bias",
     .rule = "replicate_slice",
     .sources = {{{"mlp.moe_statics.e_score_correction_bias", "2 experts"}}},
     .buffer = true,
     .slice = 0},
    {"mlp.text_moe_layer.experts.local_experts.{E}.linear_fc1.weight",
     "gated_mlp",
     {{{"mlp.experts.{E}.gate_proj.weight", "expert_ffn hidden"},
       {"mlp.experts.{E}.up_proj.weight", "expert_ffn hidden"}}}},
    {.megatron = "mlp.text_moe_layer.experts.local_experts.{E}.linear_fc2.weight",
     .rule = "row",
     .sources = {{{"mlp.experts.{E}.down_proj.weight", "hidden expert_ffn"}}},
     .alternates = true},
    {"mlp.vision_moe_layer.router.weight",
     "replicate_transposed",
     {{{"mlp.gate.weight_1", "hidden experts"}}}},
    {.megatron = "mlp.vision_moe_layer.router.expert_bias",
     .rule = "replicate_slice",
     .sources = {{{"mlp.moe_statics.e_score_correction_bias", "2 experts"}}},
     .buffer = true,
     .slice = 1},
    {"mlp.vision_moe_layer.experts.local_experts.{E}.linear_fc1.weight",
     "gated_mlp",
     {{{"mlp.experts.{S}.gate_proj.weight", "second_ffn hidden"},
       {"mlp.experts.{S}.up_proj.weight", "second_ffn hidden"}}}},
    {.megatron = "mlp.vision_moe_layer.experts.local_experts.{E}.linear_fc2.weight",
     .rule = "row",
     .sources = {{{"mlp.experts.{S}.down_proj.weight", "hidden second_ffn"}}},
     .alternates = true},
    kSharedUpRow,
    kSharedDownRow,
};

constexpr Row kFront[] = {
    copied("patch_embed.proj.weight", "hidden channels*patch*patch"),
};
constexpr Row kBlock[] = {
    copied("norm1.weight", "hidden"),
    copied("norm1.bias", "hidden"),
    copied("norm2.weight", "hidden"),
    copied("norm2.bias", "hidden"),
    copied("attn.qkv.weight", "qkv hidden"),
    copied("attn.qkv.bias", "qkv"),
    copied("attn.proj.weight", "hidden attention"),
    copied("attn.proj.bias", "hidden"),
    copied("mlp.fc1.weight", "ffn hidden"),
    copied("mlp.fc1.bias", "ffn"),
    copied("mlp.fc2.weight", "hidden ffn"),
    copied("mlp.fc2.bias", "hidden"),
};
constexpr Row kBack[] = {
    copied("ln.weight", "hidden"),
    copied("ln.bias", "hidden"),
};
constexpr Row renamed(std::string_view megatron, std::string_view file, std::string_view shape) {
  return {.megatron = megatron, .rule = "replicate", .sources = {{{file, shape}}}};
}
// Joins the patches of a square, then squares of several frames.
constexpr Row kResampler[] = {
    renamed("spatial_linear.fc1.weight", "spatial_linear.0.weight", "merged merged"),
    renamed("spatial_linear.fc1.bias", "spatial_linear.0.bias", "merged"),
    renamed("spatial_linear.fc2.weight", "spatial_linear.2.weight", "merged merged"),
    renamed("spatial_linear.fc2.bias", "spatial_linear.2.bias", "merged"),
    renamed("spatial_linear.ln.weight", "spatial_linear.3.weight", "merged"),
    renamed("spatial_linear.ln.bias", "spatial_linear.3.bias", "merged"),
    renamed("temporal_linear.fc1.weight", "temporal_linear.0.weight", "merged temporal_merge*merged"),
    renamed("temporal_linear.fc1.bias", "temporal_linear.0.bias", "merged"),
    renamed("temporal_linear.fc2.weight", "temporal_linear.2.weight", "merged merged"),
    renamed("temporal_linear.fc2.bias", "temporal_linear.2.bias", "merged"),
    renamed("temporal_linear.ln.weight", "temporal_linear.3.weight", "merged"),
    renamed("temporal_linear.ln.bias", "temporal_linear.3.bias", "merged"),
    copied("mlp.weight", "text_hidden merged"),
    copied("mlp.bias", "text_hidden"),
    copied("after_norm.weight", "text_hidden"),
};

constexpr LayerRows kVisionBlock = {.attention = kBlock};
constexpr LayerRows kLayer = {.attention = kAttentionRows, .dense = kDenseRows, .moe = kMoe};
constexpr std::string_view kTower = "vision_tower.", kTowerFile = "model.vision_model.",
                           kTowerOld = "vision_model.";
constexpr std::string_view kBlocks = "vision_tower.blocks.{L}.",
                           kBlocksFile = "model.vision_model.blocks.{L}.";
constexpr std::string_view kBlocksOld = "vision_model.blocks.{L}.";
constexpr std::string_view kLanguage = "language_model.", kLayers = "language_model.decoder.layers.{L}.";

constexpr Section kSections[] = {
    {Scope::kOnce, kTower, kTowerFile, kFront, nullptr, Stage::kFirst, Tower::kVision, false, kTowerOld},
    {Scope::kLayers,
     kBlocks,
     kBlocksFile,
     {},
     &kVisionBlock,
     Stage::kFirst,
     Tower::kVision,
     false,
     kBlocksOld},
    {Scope::kOnce, kTower, kTowerFile, kBack, nullptr, Stage::kFirst, Tower::kVision, false, kTowerOld},
    {Scope::kOnce, "resampler_model.", "model.resampler_model.", kResampler, nullptr, Stage::kFirst,
     Tower::kVision, false},
    {Scope::kOnce, kLanguage, "model.", kEmbeddingRows},
    {Scope::kLayers, kLayers, "model.layers.{L}.", {}, &kLayer},
    {Scope::kOnce, kLanguage, "model.", kFinalNormRows, nullptr, Stage::kFinalNorm},
    {Scope::kOnce, kLanguage, "model.", kTiedOutputRows, nullptr, Stage::kTiedOutput},
};

constexpr Unread kUnread[] = {
    {"lm_head.weight", "model.embed_tokens.weight", kTiedCopy, Needs::kTied},
};

constexpr std::string_view kTypes[] = {"ernie4_5_vl_moe"};
constexpr Needs kHas[] = {Needs::kSharedExpert};

constexpr ConfigStep kTextConfig[] = {
    text({.kv_groups = 4}), part("head_dim_of_hidden"), all_of(kDenseFfn), refused("use_bias"),
    part("ernie_pools"),    set(kExpertBias, true),     layer_experts(),   set(kLayersApart, true),
};
constexpr ConfigStep kVisionConfig[] = {part("ernie_vision")};
constexpr ConfigStep kConfig[] = {
    inside_or_here("text_config", kTextConfig),
    needed("tie_word_embeddings", "is false; Megatron's model of this family has no output layer of its own"),
    set(kTiedHead, true),
    inside("vision_config", kVisionConfig),
};

constexpr Family kFamilies[] = {
    {.name = "ernie4_5_vl_moe",
     .model_types = kTypes,
     .architecture = "Ernie4_5_VLMoeForConditionalGeneration",
     .summary = "ERNIE 4.5 with experts and vision",
     .sections = kSections,
     .unread = kUnread,
     .conditions = kHas,
     .config = kConfig,
     .facts = {"baidu/ERNIE-4.5-VL-28B-A3B-PT, baidu/ERNIE-4.5-VL-424B-A47B-PT", "",
               "1, tp2, tp2 ep2, tp2 ep4"}},
};

}  // namespace

std::span<const Family> ernie4_5_vl_moe_families() { return kFamilies; }

}  // namespace mckpt::impl
