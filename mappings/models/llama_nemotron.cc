// Llama-Nemotron (DeciLM: Llama-3.3-Nemotron-Super, 3.1-Ultra): Llama, of which a search has taken parts
// out. A layer has groups and a width of its own, and may lack its attention, its MLP or both; the norm in
// front of a missing part is missing too.
//
//   layer 2 without attention   model.layers.2.post_attention_layernorm, mlp.*   decoder.layers.2.mlp.*
//   layer 5 without both        no tensor                                        no parameter; layer 6 keeps its number
#include "mappings/models/blocks.h"
#include "mappings/models/config_blocks.h"
#include "mappings/models/families.h"

namespace mckpt::impl {
namespace {

using namespace config_blocks;

constexpr LayerRows kLayer = {.attention = kAttentionRows, .dense = kDenseRows};

constexpr auto kSections = text_sections(kLayer);

constexpr Unread kUnread[] = {
    {"lm_head.weight", "model.embed_tokens.weight", kTiedCopy, Needs::kTied},
    {"model.layers.{L}.self_attn.rotary_emb.inv_freq", "", kRotary},
};

constexpr std::string_view kTypes[] = {"nemotron-nas"};

constexpr ConfigStep kConfig[] = {
    text({.null_groups_are_heads = true}),
    activation(),
    refused("attention_bias"),
    refused("mlp_bias"),
    part("deci_layers"),
    set(kLayersApart, true),
};

constexpr Family kFamilies[] = {
    {.name = "llama_nemotron",
     .model_types = kTypes,
     .architecture = "DeciLMForCausalLM",
     .summary = "Llama-Nemotron, layers of their own sizes",
     .sections = kSections,
     .unread = kUnread,
     .config = kConfig,
     .facts = {"nvidia/Llama-3_3-Nemotron-Super-49B-v1_5, nvidia/Llama-3_1-Nemotron-Ultra-253B-v1", "fp8",
               "1, pp2, tp2"}},
};

}  // namespace

std::span<const Family> llama_nemotron_families() { return kFamilies; }

}  // namespace mckpt::impl
