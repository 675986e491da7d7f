// GLM-4.5, 4.6 and 4.7: grouped-query attention, with biases and with norms of q and k where the config says
// so, and the experts of DeepSeek-V3. The first layers have a dense MLP. Prediction layers follow the
// decoder's, and the copies in them of the embedding and the output layer are not read.
#include "mappings/models/config_blocks.h"
#include "mappings/models/deepseek.h"
#include "mappings/models/families.h"

namespace mckpt::impl {
namespace {

using namespace config_blocks;

constexpr LayerRows kLayer = {.attention = kAttentionRows, .dense = kDenseRows, .moe = kDeepseekMoeRows};
constexpr std::array<Section, 8> kSections = numbered_mtp_sections(kLayer);

constexpr std::string_view kTypes[] = {"glm4_moe"};
constexpr Needs kForms[] = {Needs::kExpertsApart, Needs::kExpertsFused};
constexpr Needs kHas[] = {Needs::kQkvBias, Needs::kQkNorm, Needs::kExpertBias, Needs::kSharedExpert};

constexpr Family kFamilies[] = {
    {.name = "glm4_moe",
     .model_types = kTypes,
     .architecture = "Glm4MoeForCausalLM",
     .summary = "GLM-4.5, 4.6 and 4.7",
     .sections = kSections,
     .unread = kNumberedMtpUnread,
     .expert_forms = kForms,
     .conditions = kHas,
     .config = kGlm4MoeConfig,
     .facts = {"zai-org/GLM-4.5, zai-org/GLM-4.6, zai-org/GLM-4.7", "fp8",
               "1, ep2, tp2, tp2 cp2, tp2 ep2 etp2, tp4"}},
};

}  // namespace

std::span<const Family> glm4_moe_families() { return kFamilies; }

}  // namespace mckpt::impl
