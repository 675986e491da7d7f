// gpt-oss as stored in bf16: experts fused, input dimension first, gate and up in alternate columns. The
// names determine the form: a quantised file has other names (_blocks and _scales), and shapes do not help
// because released models are square.
//
// Peculiar to this family:
// - One learnable softmax offset for each head (`sinks`), split over the cells like the heads.
// - Biases everywhere: q, k, v, the output projection, the router and both layers of the experts.
// - Expert weights and biases alternate in Megatron's order: weight0, bias0, weight1, bias1, ...
//   (`alternates`).
// - fc1 is not split on disk, because the activation is not SiLU.
#include "mappings/models/blocks.h"
#include "mappings/models/config_blocks.h"
#include "mappings/models/families.h"

namespace mckpt::impl {
namespace {

using namespace config_blocks;

constexpr Row kMoe[] = {
    {"pre_mlp_layernorm.weight", "replicate", {{{"post_attention_layernorm.weight", "hidden"}}}},
    {"mlp.router.weight", "replicate", {{{"mlp.router.weight", "experts hidden"}}}},
    {"mlp.router.bias", "replicate", {{{"mlp.router.bias", "experts"}}}, Needs::kRouterBias},
    {"mlp.experts.linear_fc1.weight{E}",
     "gated_expert_interleaved",
     {{{"mlp.experts.gate_up_proj", "experts hidden 2*expert_ffn"}}}},
    {.megatron = "mlp.experts.linear_fc1.bias{E}",
     .rule = "gated_expert_interleaved_bias",
     .sources = {{{"mlp.experts.gate_up_proj_bias", "experts 2*expert_ffn"}}},
     .alternates = true},
    {"mlp.experts.linear_fc2.weight{E}",
     "expert_row_transposed",
     {{{"mlp.experts.down_proj", "experts expert_ffn hidden"}}}},
    {.megatron = "mlp.experts.linear_fc2.bias{E}",
     .rule = "expert_replicate",
     .sources = {{{"mlp.experts.down_proj_bias", "experts hidden"}}},
     .alternates = true},
};

constexpr LayerRows kLayer = {.attention = kAttentionRows, .moe = kMoe};

constexpr auto kSections = text_sections(kLayer);

constexpr Unread kUnread[] = {
    {"lm_head.weight", "model.embed_tokens.weight", kTiedCopy, Needs::kTied},
};

constexpr std::string_view kTypes[] = {"gpt_oss"};

constexpr Needs kHas[] = {Needs::kQkvBias, Needs::kProjBias, Needs::kSinks, Needs::kRouterBias};

constexpr ConfigStep kConfig[] = {
    text({.kv_groups = 8, .head_dim = 64}),
    set(kQkvBias, true),
    set(kProjBias, true),
    set(kSinks, true),
    set(kSwiglu, false),  // a gated activation, but no SiLU
    needed("attention_bias", "is false; gpt-oss has biases"),
    layers(kAttentionAndExperts),
    experts("num_local_experts", "num_experts"),
    size(kMoeFfn, "intermediate_size"),
    set(kRouterBias, true),
    layer_experts(),
};

constexpr Family kFamilies[] = {
    {.name = "gpt_oss",
     .model_types = kTypes,
     .architecture = "GptOssForCausalLM",
     .summary = "gpt-oss in bf16",
     .sections = kSections,
     .unread = kUnread,
     .conditions = kHas,
     .config = kConfig,
     .facts = {"openai/gpt-oss-20b, openai/gpt-oss-120b", "mxfp4", "1, ep2, tp2, tp2 ep4"}},
};

}  // namespace

std::span<const Family> gpt_oss_families() { return kFamilies; }

}  // namespace mckpt::impl
