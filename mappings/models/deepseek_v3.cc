// DeepSeek-V3 and the models that have its tensors: Kimi K2, which is the same with another model_type;
// GLM-4.7-Flash; DeepSeek-V2, whose router has no bias.
//
// Peculiar to these families:
// - A padded vocabulary is a multiple of 1280 rows a cell, of DeepSeek-V2 3200.
// - Megatron-Bridge cannot load a model without q_lora_rank; it has a plain linear_q_proj here.
#include "mappings/models/deepseek.h"
#include "mappings/models/families.h"

namespace mckpt::impl {
namespace {

constexpr LayerRows kLayer = {
    .latent_attention = kLatentAttentionRows, .dense = kDenseRows, .moe = kDeepseekMoeRows};
constexpr std::array<Section, 8> kSections = numbered_mtp_sections(kLayer);

constexpr std::string_view kV2[] = {"deepseek_v2"};
constexpr std::string_view kV3[] = {"deepseek_v3", "kimi_k2"};
constexpr std::string_view kGlm[] = {"glm4_moe_lite"};
constexpr Needs kForms[] = {Needs::kExpertsApart, Needs::kExpertsFused};

constexpr Needs kV2Has[] = {Needs::kQueryLora, Needs::kNoQueryLora, Needs::kSharedExpert};
constexpr Needs kHas[] = {Needs::kQueryLora, Needs::kNoQueryLora, Needs::kExpertBias, Needs::kSharedExpert};

constexpr Family kFamilies[] = {
    {"deepseek_v3",
     kV3,
     "DeepseekV3ForCausalLM",
     "DeepSeek-V3 and R1, Moonlight, Kimi K2",
     kSections,
     kNumberedMtpUnread,
     kForms,
     kHas,
     {},
     1280},
    {"deepseek_v2",
     kV2,
     "DeepseekV2ForCausalLM",
     "DeepSeek-V2",
     kSections,
     kNumberedMtpUnread,
     kForms,
     kV2Has,
     {},
     3200},
    {"glm4_moe_lite", kGlm, "Glm4MoeLiteForCausalLM", "GLM-4.7-Flash", kSections, kNumberedMtpUnread, kForms,
     kHas},
};

}  // namespace

std::span<const Family> deepseek_v3_families() { return kFamilies; }

}  // namespace mckpt::impl
