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
#include "mappings/models/blocks.h"
#include "mappings/models/config_blocks.h"
#include "mappings/models/families.h"

namespace mckpt::impl {
namespace {

using namespace config_blocks;

constexpr Row kMamba[] = {
    {.megatron = "mixer.conv1d_weight",
     .rule = "mamba_conv",
     .sources = {{{"mixer.conv1d.weight", "mamba_conv 1 mamba_kernel"}}},
     .gathered_with = kOwnLayer},
    {.megatron = "mixer.conv1d_bias",
     .rule = "mamba_conv",
     .sources = {{{"mixer.conv1d.bias", "mamba_conv"}}},
     .gathered_with = kOwnLayer},
    {"mixer.dt_bias", "column", {{{"mixer.dt_bias", "mamba_heads"}}}},
    {"mixer.A_log", "column", {{{"mixer.A_log", "mamba_heads"}}}},
    {"mixer.D", "column", {{{"mixer.D", "mamba_heads"}}}},
    {"mixer.in_proj.layer_norm_weight", "replicate", {{{"norm.weight", "hidden"}}}},
    {"mixer.in_proj.weight", "mamba_in_proj", {{{"mixer.in_proj.weight", "mamba_in hidden"}}}},
    {"mixer.norm.weight", "column", {{{"mixer.norm.weight", "mamba_inner"}}}},
    {"mixer.out_proj.weight", "row", {{{"mixer.out_proj.weight", "hidden mamba_inner"}}}},
};

constexpr Row kAttention[] = {
    {"self_attention.linear_proj.weight", "row", {{{"mixer.o_proj.weight", "hidden attention"}}}},
    {"self_attention.linear_qkv.layer_norm_weight", "replicate", {{{"norm.weight", "hidden"}}}},
    {"self_attention.linear_qkv.weight",
     "qkv",
     {{{"mixer.q_proj.weight", "q hidden"},
       {"mixer.k_proj.weight", "kv hidden"},
       {"mixer.v_proj.weight", "kv hidden"}}}},
};

constexpr Row kMlp[] = {
    {"mlp.linear_fc1.layer_norm_weight", "replicate", {{{"norm.weight", "hidden"}}}},
    {"mlp.linear_fc1.weight", "column", {{{"mixer.up_proj.weight", "ffn hidden"}}}},
    {"mlp.linear_fc2.weight", "row", {{{"mixer.down_proj.weight", "hidden ffn"}}}},
};

constexpr Row kMoe[] = {
    {"pre_mlp_layernorm.weight", "replicate", {{{"norm.weight", "hidden"}}}},
    {"mlp.router.weight", "replicate", {{{"mixer.gate.weight", "experts hidden"}}}},
    {.megatron = "mlp.router.expert_bias",
     .rule = "replicate",
     .sources = {{{"mixer.gate.e_score_correction_bias", "experts"}}},
     .needs = Needs::kExpertBias,
     .buffer = true},
    {"mlp.fc1_latent_proj.weight",
     "replicate",
     {{{"mixer.fc1_latent_proj.weight", "expert_hidden hidden"}}},
     Needs::kLatent},
    {"mlp.fc2_latent_proj.weight",
     "replicate",
     {{{"mixer.fc2_latent_proj.weight", "hidden expert_hidden"}}},
     Needs::kLatent},
    {"mlp.experts.linear_fc1.weight{E}",
     "column",
     {{{"mixer.experts.{E}.up_proj.weight", "expert_ffn expert_hidden"}}},
     Needs::kExpertsApart},
    {"mlp.experts.linear_fc1.weight{E}",
     "expert_column",
     {{{"mixer.experts.up_proj", "experts expert_ffn expert_hidden"}}},
     Needs::kExpertsFused},
    {"mlp.experts.linear_fc2.weight{E}",
     "row",
     {{{"mixer.experts.{E}.down_proj.weight", "expert_hidden expert_ffn"}}},
     Needs::kExpertsApart},
    {"mlp.experts.linear_fc2.weight{E}",
     "expert_row",
     {{{"mixer.experts.down_proj", "experts expert_hidden expert_ffn"}}},
     Needs::kExpertsFused},
    {"mlp.shared_experts.linear_fc1.weight",
     "column",
     {{{"mixer.shared_experts.up_proj.weight", "shared_ffn hidden"}}},
     Needs::kSharedExpert},
    {"mlp.shared_experts.linear_fc2.weight",
     "row",
     {{{"mixer.shared_experts.down_proj.weight", "hidden shared_ffn"}}},
     Needs::kSharedExpert},
};

constexpr LayerRows kLayer = {.attention = kAttention, .mamba = kMamba, .dense = kMlp, .moe = kMoe};

// Released files have "embeddings"; some versions of transformers write "embedding".
constexpr Row kEmbedding[] = {
    {.megatron = "embedding.word_embeddings.weight",
     .rule = "vocab",
     .sources = {{{"embeddings.weight", "vocab hidden"}}},
     .also = "embedding.weight"},
};
constexpr Row kTiedOutput[] = {
    {.megatron = "output_layer.weight",
     .rule = "vocab",
     .sources = {{{"embeddings.weight", "vocab hidden"}}},
     .needs = Needs::kTied,
     .also = "embedding.weight"},
};
constexpr Row kFinalNorm[] = {
    {"decoder.final_norm.weight", "replicate", {{{"norm_f.weight", "hidden"}}}},
};
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
    {Scope::kOnce, "", "backbone.", kEmbedding, nullptr, Stage::kFirstAndMtp},
    {Scope::kLayers, "decoder.layers.{L}.", "backbone.layers.{L}.", {}, &kLayer},
    {Scope::kOnce, "", "backbone.", kFinalNorm, nullptr, Stage::kFinalNorm},
    {Scope::kMtpHead, kMtp, "mtp.layers.{F}.", kMtpHead, nullptr, Stage::kMtp},
    {Scope::kMtpLayers, kMtpLayer, "mtp.layers.{F}.", {}, &kLayer, Stage::kMtp},
    {Scope::kMtpTail, kMtp, "mtp.layers.{F}.", kMtpTail, nullptr, Stage::kMtp},
    {Scope::kOnce, "", "", kOutputRows, nullptr, Stage::kOutput},
    {Scope::kOnce, "", "backbone.", kTiedOutput, nullptr, Stage::kTiedOutput},
};

constexpr Unread kUnread[] = {
    {"lm_head.weight", "backbone.embeddings.weight", kTiedCopy, Needs::kTied},
};

constexpr std::string_view kTypes[] = {"nemotron_h"};
constexpr Needs kForms[] = {Needs::kExpertsApart, Needs::kExpertsFused};

constexpr Needs kHas[] = {Needs::kSharedExpert, Needs::kExpertBias, Needs::kLatent};

constexpr ConfigStep kConfig[] = {
    text({.kv_groups = 8, .head_dim = 128}),
    refused("attention_bias"),
    refused("mlp_bias"),
    refused("use_bias"),
    set(kGatedMlp, false),
    set(kSwiglu, false),
    part("hybrid_layers"),
};

constexpr Family kFamilies[] = {
    {.name = "nemotron_h",
     .model_types = kTypes,
     .architecture = "NemotronHForCausalLM",
     .summary = "Nemotron-H and Nemotron-3, dense and with experts",
     .sections = kSections,
     .unread = kUnread,
     .expert_forms = kForms,
     .conditions = kHas,
     .config = kConfig,
     .facts = {"nvidia/Nemotron-H-8B-Base-8K, nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16, "
               "nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-BF16, nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B-BF16",
               "fp8, nvfp4", "1, ep2, tp2, tp2 cp2, tp2 ep2, tp2 ep2 etp2, tp2 ep4, tp4"}},
};

}  // namespace

std::span<const Family> nemotron_h_families() { return kFamilies; }

}  // namespace mckpt::impl
