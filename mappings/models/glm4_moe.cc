// GLM-4.5, 4.6 and 4.7: grouped-query attention, with biases and with norms of q and k where the config says
// so, and the experts of DeepSeek-V3. The first layers have a dense MLP. Prediction layers follow those of
// the decoder, and the copies in them of the embedding and the output layer are not read.
#include "mappings/models/deepseek.h"
#include "mappings/models/families.h"

namespace mckpt::impl {
namespace {

constexpr LayerRows kLayer = {.attention = kAttentionRows, .dense = kDenseRows, .moe = kDeepseekMoeRows};
constexpr std::array<Section, 8> kSections = numbered_mtp_sections(kLayer);

constexpr std::string_view kTypes[] = {"glm4_moe"};
constexpr Needs kForms[] = {Needs::kExpertsApart, Needs::kExpertsFused};
constexpr Needs kHas[] = {Needs::kQkvBias, Needs::kQkNorm, Needs::kExpertBias, Needs::kSharedExpert};

constexpr Family kFamilies[] = {
    {"glm4_moe", kTypes, "Glm4MoeForCausalLM", "GLM-4.5, 4.6 and 4.7", kSections, kNumberedMtpUnread, kForms,
     kHas},
};

}  // namespace

std::span<const Family> glm4_moe_families() { return kFamilies; }

}  // namespace mckpt::impl
