// Llama 3, Qwen2 and 2.5, Qwen3: one decoder of attention and gated MLP. The three have one table; conditions
// of rows (Needs) make the differences:
//
//              bias of q, k, v      norm of each query and key head
//   llama      no                   no
//   qwen2      yes                  no
//   qwen3      no                   yes
//
// Layer 3 of such a model, in the file and in Megatron:
//
//   model.layers.3.                     decoder.layers.3.
//     self_attn.{q,k,v}_proj.weight       self_attention.linear_qkv.weight
//     input_layernorm.weight              self_attention.linear_qkv.layer_norm_weight
//     mlp.{gate,up}_proj.weight           mlp.linear_fc1.weight
//     mlp.down_proj.weight                mlp.linear_fc2.weight
#include "mappings/models/blocks.h"
#include "mappings/models/config_blocks.h"
#include "mappings/models/families.h"

namespace mckpt::impl {
namespace {

using namespace config_blocks;

constexpr LayerRows kLayer = {.attention = kAttentionRows, .dense = kDenseRows};

constexpr auto kPlainSections = text_sections(kLayer);
// Qwen3 may have a layer for multi-token prediction.
constexpr auto kSections = qwen_sections(kLayer);

constexpr Unread kUnread[] = {
    {"lm_head.weight", "model.embed_tokens.weight", kTiedCopy, Needs::kTied},
    {"model.layers.{L}.self_attn.rotary_emb.inv_freq", "", kRotary},
};

constexpr std::string_view kLlama[] = {"llama"};
constexpr std::string_view kMistral[] = {"mistral"};
constexpr std::string_view kSeedOss[] = {"seed_oss"};
constexpr std::string_view kQwen2[] = {"qwen2"};
constexpr std::string_view kQwen3[] = {"qwen3"};

constexpr Needs kSeedOssHas[] = {Needs::kQkvBias, Needs::kProjBias};
constexpr Needs kQwen2Has[] = {Needs::kQkvBias};
constexpr Needs kQwen3Has[] = {Needs::kQkNorm};

constexpr ConfigStep kMistralConfig[] = {
    text({.kv_groups = 8, .null_groups_are_heads = true}),
    all_of(kPlainDecoder),
};
constexpr ConfigStep kSeedOssConfig[] = {
    text({.kv_groups = 8, .head_dim = 128, .null_groups_are_heads = true}),
    all_of(kDenseFfn),
    refused("mlp_bias"),
    flag(kQkvBias, "attention_bias", true),
    flag(kProjBias, "attention_out_bias", false),
    layers(),
};
constexpr ConfigStep kQwen3Config[] = {
    text({.kv_groups = 32, .head_dim = 128, .null_groups_are_heads = true}),
    all_of(kPlainDecoder),
    set(kQkNorm, true),
    mtp(1),
};

constexpr Family kFamilies[] = {
    {.name = "llama",
     .model_types = kLlama,
     .architecture = "LlamaForCausalLM",
     .summary = "Llama 3",
     .sections = kPlainSections,
     .unread = kUnread,
     .config = kLlamaConfig,
     .facts = {"meta-llama/Llama-3.1-8B, meta-llama/Llama-3.3-70B-Instruct", "", "1, tp2"}},
    {.name = "mistral",
     .model_types = kMistral,
     .architecture = "MistralForCausalLM",
     .summary = "Mistral 7B, Nemo, Small 3, Ministral",
     .sections = kPlainSections,
     .unread = kUnread,
     .config = kMistralConfig,
     .facts = {"mistralai/Mistral-7B-v0.3, mistralai/Mistral-Nemo-Base-2407", "awq, gptq",
               "1, tp2, tp2 cp2, tp8"}},
    {.name = "seed_oss",
     .model_types = kSeedOss,
     .architecture = "SeedOssForCausalLM",
     .summary = "Seed-OSS",
     .sections = kPlainSections,
     .unread = kUnread,
     .conditions = kSeedOssHas,
     .config = kSeedOssConfig,
     .facts = {"ByteDance-Seed/Seed-OSS-36B-Base", "", ""}},
    {.name = "qwen2",
     .model_types = kQwen2,
     .architecture = "Qwen2ForCausalLM",
     .summary = "Qwen2 and Qwen2.5, dense",
     .sections = kPlainSections,
     .unread = kUnread,
     .conditions = kQwen2Has,
     .config = kQwen2Config,
     .facts = {"Qwen/Qwen2.5-7B-Instruct, Qwen/Qwen2.5-72B", "awq, gptq", "tp2"}},
    {.name = "qwen3",
     .model_types = kQwen3,
     .architecture = "Qwen3ForCausalLM",
     .summary = "Qwen3, dense",
     .sections = kSections,
     .unread = kUnread,
     .conditions = kQwen3Has,
     .config = kQwen3Config,
     .facts = {"Qwen/Qwen3-8B, Qwen/Qwen3-32B", "fp8 blocks, awq", "1, pp2, pp3, tp2, tp4"}},
};

}  // namespace

std::span<const Family> dense_families() { return kFamilies; }

}  // namespace mckpt::impl
