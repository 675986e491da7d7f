// Falcon-H1: attention and Mamba side by side in every layer, behind one norm, then a gated MLP.
//
//            .-> mamba_mixer    -.
//   norm  --<                     >-- +  -> mlp (with its own norm)
//            '-> self_attention -'
//
// Peculiar to this family: the norm before both mixers is a parameter of the layer, so neither in_proj nor
// linear_qkv has one. The multipliers of the config are not part of any tensor.
#include "mappings/models/blocks.h"
#include "mappings/models/config_blocks.h"
#include "mappings/models/families.h"

namespace mckpt::impl {
namespace {

using namespace config_blocks;

constexpr Row kMixers[] = {
    {"norm.weight", "replicate", {{{"input_layernorm.weight", "hidden"}}}},
    {.megatron = "mamba_mixer.conv1d_weight",
     .rule = "mamba_conv",
     .sources = {{{"mamba.conv1d.weight", "mamba_conv 1 mamba_kernel"}}},
     .gathered_with = kOwnLayer},
    {.megatron = "mamba_mixer.conv1d_bias",
     .rule = "mamba_conv",
     .sources = {{{"mamba.conv1d.bias", "mamba_conv"}}},
     .gathered_with = kOwnLayer},
    {"mamba_mixer.dt_bias", "column", {{{"mamba.dt_bias", "mamba_heads"}}}},
    {"mamba_mixer.A_log", "column", {{{"mamba.A_log", "mamba_heads"}}}},
    {"mamba_mixer.D", "column", {{{"mamba.D", "mamba_heads"}}}},
    {"mamba_mixer.in_proj.weight", "mamba_in_proj", {{{"mamba.in_proj.weight", "mamba_in hidden"}}}},
    {"mamba_mixer.norm.weight", "column", {{{"mamba.norm.weight", "mamba_inner"}}}, Needs::kMambaNorm},
    {"mamba_mixer.out_proj.weight", "row", {{{"mamba.out_proj.weight", "hidden mamba_inner"}}}},
    kLinearProj,
    kQkv,
};

constexpr Row kMlp[] = {
    {"mlp.linear_fc1.layer_norm_weight", "replicate", {{{"pre_ff_layernorm.weight", "hidden"}}}},
    {"mlp.linear_fc1.weight",
     "gated_mlp",
     {{{"feed_forward.gate_proj.weight", "ffn hidden"}, {"feed_forward.up_proj.weight", "ffn hidden"}}},
     Needs::kAlways,
     KeySplit::kSwiglu},
    {"mlp.linear_fc2.weight", "row", {{{"feed_forward.down_proj.weight", "hidden ffn"}}}},
};

constexpr LayerRows kLayer = {.attention_and_mamba = kMixers, .dense = kMlp};

constexpr Row kFinalNorm[] = {
    {"decoder.final_norm.weight", "replicate", {{{"final_layernorm.weight", "hidden"}}}},
};

constexpr Section kSections[] = {
    {Scope::kOnce, "", "model.", kEmbeddingRows},
    {Scope::kLayers, "decoder.layers.{L}.", "model.layers.{L}.", {}, &kLayer},
    {Scope::kOnce, "", "model.", kFinalNorm, nullptr, Stage::kFinalNorm},
    {Scope::kOnce, "", "", kOutputRows, nullptr, Stage::kOutput},
    {Scope::kOnce, "", "model.", kTiedOutputRows, nullptr, Stage::kTiedOutput},
};

constexpr Unread kUnread[] = {
    {"lm_head.weight", "model.embed_tokens.weight", kTiedCopy, Needs::kTied},
};

constexpr std::string_view kTypes[] = {"falcon_h1"};
constexpr Needs kHas[] = {Needs::kMambaNorm};

constexpr NumberOf kMambaHeads = member<&ModelConfig::mamba, &MambaConfig::heads>;
constexpr NumberOf kMambaGroups = member<&ModelConfig::mamba, &MambaConfig::groups>;
constexpr ConfigStep kConfig[] = {
    text({.kv_groups = 8}),
    all_of(kDenseFfn),
    refused("attention_bias"),
    refused("mlp_bias"),
    refused("mamba_proj_bias"),
    refused("projectors_bias"),
    needed("mamba_conv_bias", "is false; Megatron's Mamba has that bias"),
    layers({Mixer::kAttentionAndMamba, Ffn::kDense}),
    size(kMambaHeads, "mamba_n_heads"),
    part("mamba_head_dim"),
    size(member<&ModelConfig::mamba, &MambaConfig::state>, "mamba_d_state"),
    size(kMambaGroups, "mamba_n_groups"),
    size(member<&ModelConfig::mamba, &MambaConfig::conv_kernel>, "mamba_d_conv"),
    flag(member<&ModelConfig::mamba, &MambaConfig::norm>, "mamba_rms_norm", false),
    divides("mamba_n_heads", kMambaHeads, "mamba_n_groups", kMambaGroups),
};

constexpr Family kFamilies[] = {
    {.name = "falcon_h1",
     .model_types = kTypes,
     .architecture = "FalconH1ForCausalLM",
     .summary = "Falcon-H1",
     .sections = kSections,
     .unread = kUnread,
     .conditions = kHas,
     .config = kConfig,
     .facts = {"tiiuae/Falcon-H1-7B-Base, tiiuae/Falcon-H1-34B-Base", "gptq", "1, tp2 cp2"}},
};

}  // namespace

std::span<const Family> falcon_h1_families() { return kFamilies; }

}  // namespace mckpt::impl
