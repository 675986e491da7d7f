// Qwen3-Next: gated delta nets in most layers, gated attention in some, and experts in every layer or in
// every few, always with a shared expert beside them if the config gives its width. The output gate of
// attention is in q_proj, beside the queries of each head; rule `qkv` takes the two apart.
#include "mappings/models/blocks.h"
#include "mappings/models/config_blocks.h"
#include "mappings/models/families.h"
#include "mappings/models/gdn.h"

namespace mckpt::impl {
namespace {

using namespace config_blocks;

// A layer takes the lists of its mixer and its feed-forward part.
constexpr LayerRows kLayer = {
    .attention = kAttentionRows, .gdn = kGroupedGdnRows, .dense = kDenseRows, .moe = kQwenMoeRows};

// In the order in which Megatron registers the parameters.
constexpr auto kSections = qwen_sections(kLayer);

constexpr Unread kUnread[] = {
    {"lm_head.weight", "model.embed_tokens.weight", kTiedCopy, Needs::kTied},
};

constexpr std::string_view kTypes[] = {"qwen3_next"};

constexpr Needs kHas[] = {Needs::kQkNorm, Needs::kSharedExpert, Needs::kSharedGate};

constexpr Family kFamilies[] = {
    {.name = "qwen3_next",
     .model_types = kTypes,
     .architecture = "Qwen3NextForCausalLM",
     .summary = "Qwen3-Next",
     .sections = kSections,
     .unread = kUnread,
     .expert_forms = kQwenExpertForms,
     .conditions = kHas,
     .config = kQwen3NextConfig,
     .facts = {"Qwen/Qwen3-Next-80B-A3B-Instruct", "fp8 blocks", "1, tp2 ep4"}},
};

}  // namespace

std::span<const Family> qwen3_next_families() { return kFamilies; }

}  // namespace mckpt::impl
