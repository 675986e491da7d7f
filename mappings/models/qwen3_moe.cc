// Qwen3-MoE: the decoder of Qwen3 with a mixture of experts instead of the MLP. Layers in mlp_only_layers, or
// skipped by decoder_sparse_step, have a dense MLP; the list of layers in ModelConfig says which.
//
//   model.layers.0.mlp.experts.7.{gate,up}_proj.weight      decoder.layers.0.mlp.experts.linear_fc1.weight7
//   model.layers.0.mlp.experts.7.down_proj.weight           decoder.layers.0.mlp.experts.linear_fc2.weight7
//   model.layers.0.mlp.gate.weight                          decoder.layers.0.mlp.router.weight
#include "mappings/models/blocks.h"
#include "mappings/models/config_blocks.h"
#include "mappings/models/families.h"

namespace mckpt::impl {
namespace {

using namespace config_blocks;

constexpr LayerRows kLayer = {.attention = kAttentionRows, .dense = kDenseRows, .moe = kQwenMoeRows};

constexpr auto kSections = qwen_sections(kLayer);

constexpr Unread kUnread[] = {
    {"lm_head.weight", "model.embed_tokens.weight", kTiedCopy, Needs::kTied},
    {"model.layers.{L}.self_attn.rotary_emb.inv_freq", "", kRotary},
};

constexpr std::string_view kTypes[] = {"qwen3_moe"};

constexpr Needs kHas[] = {Needs::kQkNorm};

constexpr Family kFamilies[] = {
    {.name = "qwen3_moe",
     .model_types = kTypes,
     .architecture = "Qwen3MoeForCausalLM",
     .summary = "Qwen3 with experts",
     .sections = kSections,
     .unread = kUnread,
     .expert_forms = kQwenExpertForms,
     .conditions = kHas,
     .config = kQwen3MoeConfig,
     .facts = {"Qwen/Qwen3-30B-A3B, Qwen/Qwen3-235B-A22B", "fp8 blocks", "1, ep2, tp2 ep2 etp2, tp2 ep4"}},
};

}  // namespace

std::span<const Family> qwen3_moe_families() { return kFamilies; }

}  // namespace mckpt::impl
