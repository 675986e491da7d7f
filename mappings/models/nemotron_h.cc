// Nemotron-H: one block a layer, chosen by the hybrid pattern: Mamba, attention, MLP or experts. MLPs are not
// gated.
//
//   pattern M-*     backbone.layers.0.mixer.in_proj    Mamba         decoder.layers.0.mixer.in_proj
//                   backbone.layers.1.mixer.up_proj    MLP           decoder.layers.1.mlp.linear_fc1
//                   backbone.layers.2.mixer.q_proj     attention     decoder.layers.2.self_attention.linear_qkv
//
// Peculiar to this family:
// - Every block is called `mixer` in the file, and its norm `norm`; Megatron has three names for them.
// - Hugging Face counts the layers of all MTP depths in one sequence: with 2 layers a depth, layer 1 of depth
//   1 is mtp.layers.3 ({F} = depth * layers + layer). The parts before and after the layers of a depth are in
//   its first and last.
// - Experts may work on a latent width, with a projection of the hidden size before and after them
//   (fc1_latent_proj, fc2_...).
// - The embedding has two spellings in files of different origin.
#include "mappings/models/nemotron_h.h"
#include "mappings/models/families.h"

namespace mckpt::impl {
namespace {

using namespace config_blocks;

constexpr Row kMtpHead[] = {
    {"enorm.weight", "replicate", {{{"enorm.weight", "hidden"}}}},
    {"hnorm.weight", "replicate", {{{"hnorm.weight", "hidden"}}}},
    {"eh_proj.weight", "column", {{{"eh_proj.weight", "hidden 2*hidden"}}}},
};
constexpr Row kMtpTail[] = {
    {"final_layernorm.weight", "replicate", {{{"final_layernorm.weight", "hidden"}}}},
};

constexpr std::string_view kMtp = "mtp.layers.{M}.", kMtpLayer = "mtp.layers.{M}.mtp_model_layer.layers.{I}.";

constexpr Section kSections[] = {
    {Scope::kOnce, "", "backbone.", kHybridEmbeddingRows, nullptr, Stage::kFirstAndMtp},
    {Scope::kLayers, "decoder.layers.{L}.", "backbone.layers.{L}.", {}, &kHybridLayer},
    {Scope::kOnce, "", "backbone.", kHybridFinalNormRows, nullptr, Stage::kFinalNorm},
    {Scope::kMtpHead, kMtp, "mtp.layers.{F}.", kMtpHead, nullptr, Stage::kMtp},
    {Scope::kMtpLayers, kMtpLayer, "mtp.layers.{F}.", {}, &kHybridLayer, Stage::kMtp},
    {Scope::kMtpTail, kMtp, "mtp.layers.{F}.", kMtpTail, nullptr, Stage::kMtp},
    {Scope::kOnce, "", "", kOutputRows, nullptr, Stage::kOutput},
    {Scope::kOnce, "", "backbone.", kHybridTiedOutputRows, nullptr, Stage::kTiedOutput},
};

constexpr Unread kUnread[] = {
    {"lm_head.weight", "backbone.embeddings.weight", kTiedCopy, Needs::kTied},
};

constexpr std::string_view kTypes[] = {"nemotron_h"};
constexpr Needs kForms[] = {Needs::kExpertsApart, Needs::kExpertsFused};

constexpr Needs kHas[] = {Needs::kSharedExpert, Needs::kExpertBias, Needs::kLatent};

constexpr Family kFamilies[] = {
    {.name = "nemotron_h",
     .model_types = kTypes,
     .architecture = "NemotronHForCausalLM",
     .summary = "Nemotron-H and Nemotron-3, dense and with experts",
     .sections = kSections,
     .unread = kUnread,
     .expert_forms = kForms,
     .conditions = kHas,
     .config = kHybridConfig,
     .facts = {"nvidia/Nemotron-H-8B-Base-8K, nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16, "
               "nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-BF16, nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B-BF16",
               "fp8, nvfp4", "1, ep2, tp2, tp2 cp2, tp2 ep2, tp2 ep2 etp2, tp2 ep4, tp4"}},
};

}  // namespace

std::span<const Family> nemotron_h_families() { return kFamilies; }

}  // namespace mckpt::impl
