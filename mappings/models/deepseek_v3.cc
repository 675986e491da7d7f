// DeepSeek-V3 and the models that have its tensors: Kimi K2, which is the same with another model_type;
// GLM-4.7-Flash; DeepSeek-V2, whose router has no bias; the large model of Sarvam, which counts experts under
// other names.
//
// Peculiar to these families:
// - A padded vocabulary is a multiple of 1280 rows a cell, of DeepSeek-V2 3200, of Sarvam 128.
// - A model without q_lora_rank, as Sarvam is, has a plain linear_q_proj here. Megatron-Bridge 0.6.2 cannot
// load one:
//   Megatron-Core 0.19 gives linear_q_proj a norm that no tensor of the file has.
#include "mappings/models/config_blocks.h"
#include "mappings/models/deepseek.h"
#include "mappings/models/families.h"

namespace mckpt::impl {
namespace {

using namespace config_blocks;

constexpr LayerRows kLayer = {
    .latent_attention = kLatentAttentionRows, .dense = kDenseRows, .moe = kDeepseekMoeRows};
constexpr std::array<Section, 8> kSections = numbered_mtp_sections(kLayer);

constexpr std::string_view kV2[] = {"deepseek_v2"};
constexpr std::string_view kV3[] = {"deepseek_v3", "kimi_k2"};
constexpr std::string_view kGlm[] = {"glm4_moe_lite"};
constexpr std::string_view kSarvam[] = {"sarvam_mla"};
constexpr Needs kForms[] = {Needs::kExpertsApart, Needs::kExpertsFused};

constexpr Needs kV2Has[] = {Needs::kQueryLora, Needs::kNoQueryLora, Needs::kSharedExpert};
constexpr Needs kHas[] = {Needs::kQueryLora, Needs::kNoQueryLora, Needs::kExpertBias, Needs::kSharedExpert};

constexpr ConfigStep kV3Config[] = {
    query_rank(1536),
    all_of(kLatentDecoder),
    layers({Mixer::kLatentAttention, Ffn::kDense}),
    part("every_few_experts", 3),
    layer_experts(),
    mtp(16, {Mixer::kLatentAttention, Ffn::kMoe}),
};
constexpr ConfigStep kV2Config[] = {
    all_of(kV3Config),
    refused("mlp_bias"),
    part("every_few_experts", 0),
    shared_experts("n_shared_experts", 2),
    set(kExpertBias, false),
};
constexpr ConfigStep kGlmConfig[] = {
    query_rank(768), all_of(kLatentDecoder), layers({Mixer::kLatentAttention, Ffn::kDense}),
    dense_layers(1), layer_experts(),        mtp(16, {Mixer::kLatentAttention, Ffn::kMoe}),
};
// The hub's words come first; transformers 5.24 writes DeepSeek's. Megatron's model has the router's bias,
// and no prediction layers.
constexpr ConfigStep kSarvamConfig[] = {
    query_rank(0),
    all_of(kLatentSizes),
    experts("num_experts", "n_routed_experts"),
    size(kMoeFfn, "moe_intermediate_size"),
    shared_experts("num_shared_experts", 1, "n_shared_experts"),
    needed("moe_router_enable_expert_bias", "is false; Megatron's routers of this family have a bias"),
    set(kExpertBias, true),
    layers({Mixer::kLatentAttention, Ffn::kDense}),
    dense_layers(1),
    layer_experts(),
    mtp(0),
    no_mtp(),
};

constexpr Family kFamilies[] = {
    {.name = "deepseek_v3",
     .model_types = kV3,
     .architecture = "DeepseekV3ForCausalLM",
     .summary = "DeepSeek-V3 and R1, Moonlight, Kimi K2",
     .sections = kSections,
     .unread = kNumberedMtpUnread,
     .expert_forms = kForms,
     .conditions = kHas,
     .vocab_divisor = 1280,
     .config = kV3Config,
     .facts = {"deepseek-ai/DeepSeek-V3, deepseek-ai/DeepSeek-R1, moonshotai/Kimi-K2-Instruct, "
               "moonshotai/Kimi-K2-Thinking",
               "fp8 blocks, int4", "1, ep2, ep8, tp2, tp2 cp2 ep2, tp2 ep2, tp2 ep4, tp4 ep2"}},
    {.name = "deepseek_v2",
     .model_types = kV2,
     .architecture = "DeepseekV2ForCausalLM",
     .summary = "DeepSeek-V2",
     .sections = kSections,
     .unread = kNumberedMtpUnread,
     .expert_forms = kForms,
     .conditions = kV2Has,
     .vocab_divisor = 3200,
     .config = kV2Config,
     .facts = {"deepseek-ai/DeepSeek-V2, deepseek-ai/DeepSeek-V2.5", "",
               "1, tp2, tp2 cp2, tp2 ep2 etp2, tp4"}},
    {.name = "glm4_moe_lite",
     .model_types = kGlm,
     .architecture = "Glm4MoeLiteForCausalLM",
     .summary = "GLM-4.7-Flash",
     .sections = kSections,
     .unread = kNumberedMtpUnread,
     .expert_forms = kForms,
     .conditions = kHas,
     .config = kGlmConfig,
     .facts = {"zai-org/GLM-4.7-Flash", "", "1, ep8, tp2 cp2 ep2, tp2 ep4, tp4 ep2"}},
    {.name = "sarvam_mla",
     .model_types = kSarvam,
     .architecture = "SarvamMLAForCausalLM",
     .summary = "Sarvam, with latent attention",
     .sections = kSections,
     .unread = kNumberedMtpUnread,
     .expert_forms = kForms,
     .conditions = kHas,
     .vocab_divisor = 128,
     .config = kSarvamConfig,
     .facts = {"sarvamai/sarvam-105b", "", "1, ep2, ep8, tp2, tp2 ep2 etp2, tp2 ep4, tp2 pp2 ep2, tp4 ep2"}},
};

}  // namespace

std::span<const Family> deepseek_v3_families() { return kFamilies; }

}  // namespace mckpt::impl
