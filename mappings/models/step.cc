// Step-3.5, and Step-3.7 with vision: experts beside a shared one, and attention layers of two kinds with
// different numbers of heads (ModelConfig::layer_sizes), whose query heads have a gate each.
//
//   model.layers.5.self_attn.g_proj [heads, hidden]    in linear_qkv, behind the queries of each group, each row head_dim times
//   model.layers.5.moe.gate_proj [experts, I, hidden]  one tensor of all experts for each of gate, up and down
//
// Peculiar to these families:
// - Norms are stored less one in the file too, and copied.
// - Layers for prediction follow the decoder's and are dense; each may be of either kind.
// - The tower of 3.7 and its projector are Hugging Face's modules; the projector has another name there.
// - Megatron-Bridge builds 3.7 without its layers for prediction; they have their tensors here.
#include "mappings/models/config_blocks.h"
#include "mappings/models/deepseek.h"
#include "mappings/models/families.h"

namespace mckpt::impl {
namespace {

using namespace config_blocks;

constexpr Row kAttention[] = {
    kLinearProj,
    kFusedInputNorm,
    {"self_attention.linear_qkv.weight",
     "qkv_head_gates",
     {{{"self_attn.q_proj.weight", "q hidden"},
       {"self_attn.k_proj.weight", "kv hidden"},
       {"self_attn.v_proj.weight", "kv hidden"},
       {"self_attn.g_proj.weight", "heads hidden"}}}},
    kQueryNorm,
    kKeyNorm,
};

constexpr Row kMoe[] = {
    kMoeNormRow,
    {"mlp.router.weight", "replicate", {{{"moe.gate.weight", "experts hidden"}}}},
    expert_bias_row("moe.router_bias"),
    {"mlp.experts.linear_fc1.weight{E}",
     "gated_expert_of_two",
     {{{"moe.gate_proj.weight", "experts expert_ffn hidden"},
       {"moe.up_proj.weight", "experts expert_ffn hidden"}}},
     Needs::kAlways,
     KeySplit::kSwiglu},
    {"mlp.experts.linear_fc2.weight{E}",
     "expert_row",
     {{{"moe.down_proj.weight", "experts hidden expert_ffn"}}}},
    {"mlp.shared_experts.linear_fc1.weight",
     "gated_mlp",
     {{{"share_expert.gate_proj.weight", "shared_ffn hidden"},
       {"share_expert.up_proj.weight", "shared_ffn hidden"}}},
     Needs::kAlways,
     KeySplit::kSwiglu},
    {"mlp.shared_experts.linear_fc2.weight",
     "row",
     {{{"share_expert.down_proj.weight", "hidden shared_ffn"}}}},
};

constexpr Row kMtpTail[] = {
    {"final_layernorm.weight", "replicate", {{{"transformer.shared_head.norm.weight", "hidden"}}}},
};

constexpr LayerRows kLayer = {.attention = kAttention, .dense = kDenseRows, .moe = kMoe};

constexpr Section kText[] = {
    {Scope::kOnce, "", "model.", kEmbeddingRows, nullptr, Stage::kFirstAndMtp},
    {Scope::kLayers, "decoder.layers.{L}.", "model.layers.{L}.", {}, &kLayer},
    {Scope::kOnce, "", "model.", kFinalNormRows, nullptr, Stage::kFinalNorm},
    {Scope::kMtpHead, "mtp.layers.{M}.", "model.layers.{N}.", kNumberedMtpHeadRows, nullptr, Stage::kMtp},
    {Scope::kMtpLayers, "mtp.layers.{M}.mtp_model_layer.", "model.layers.{N}.", {}, &kLayer, Stage::kMtp},
    {Scope::kMtpTail, "mtp.layers.{M}.", "model.layers.{N}.", kMtpTail, nullptr, Stage::kMtp},
    {Scope::kOnce, "", "", kOutputRows, nullptr, Stage::kOutput},
    {Scope::kOnce, "", "model.", kTiedOutputRows, nullptr, Stage::kTiedOutput},
};

constexpr Row kFront[] = {
    copied("positional_embedding", "positions hidden"),
    copied("conv1.weight", "hidden channels patch patch"),
    copied("ln_pre.weight", "hidden"),
    copied("ln_pre.bias", "hidden"),
};
constexpr Row kBlock[] = {
    copied("attn.in_proj_weight", "3*hidden hidden"),
    copied("attn.in_proj_bias", "3*hidden"),
    copied("attn.out_proj.weight", "hidden hidden"),
    copied("attn.out_proj.bias", "hidden"),
    copied("ln_1.weight", "hidden"),
    copied("ln_1.bias", "hidden"),
    copied("ln_2.weight", "hidden"),
    copied("ln_2.bias", "hidden"),
    copied("mlp.c_fc.weight", "ffn hidden"),
    copied("mlp.c_fc.bias", "ffn"),
    copied("mlp.c_proj.weight", "hidden ffn"),
    copied("mlp.c_proj.bias", "hidden"),
    copied("ls_1.gamma", "hidden"),
    copied("ls_2.gamma", "hidden"),
};
constexpr Row kDownsamplers[] = {
    copied("vit_downsampler1.weight", "2*hidden hidden 3 3"),
    copied("vit_downsampler1.bias", "2*hidden"),
    copied("vit_downsampler2.weight", "4*hidden 2*hidden 3 3"),
    copied("vit_downsampler2.bias", "4*hidden"),
};
constexpr Row kProjector[] = {
    {"align_projector.weight", "replicate", {{{"vit_large_projector.weight", "text_hidden 4*hidden"}}}},
};

constexpr LayerRows kVisionLayer = {.attention = kBlock};
constexpr std::string_view kVision = "vision_model.", kLanguage = "language_model.";
constexpr std::string_view kBlocks = "vision_model.transformer.resblocks.{L}.";
constexpr std::string_view kLayers = "language_model.decoder.layers.{L}.";
constexpr std::string_view kDepth = "language_model.mtp.layers.{M}.";
constexpr std::string_view kDepthLayer = "language_model.mtp.layers.{M}.mtp_model_layer.";
constexpr std::string_view kNext = "model.layers.{N}.";

constexpr Section kWithVision[] = {
    {Scope::kOnce, kVision, kVision, kFront, nullptr, Stage::kFirst, Tower::kVision},
    {Scope::kLayers, kBlocks, kBlocks, {}, &kVisionLayer, Stage::kFirst, Tower::kVision, false},
    {Scope::kOnce, kVision, kVision, kDownsamplers, nullptr, Stage::kFirst, Tower::kVision},
    {Scope::kOnce, kLanguage, "model.", kEmbeddingRows, nullptr, Stage::kFirstAndMtp},
    {Scope::kLayers, kLayers, "model.layers.{L}.", {}, &kLayer},
    {Scope::kOnce, kLanguage, "model.", kFinalNormRows, nullptr, Stage::kFinalNorm},
    {Scope::kMtpHead, kDepth, kNext, kNumberedMtpHeadRows, nullptr, Stage::kMtp},
    {Scope::kMtpLayers, kDepthLayer, kNext, {}, &kLayer, Stage::kMtp},
    {Scope::kMtpTail, kDepth, kNext, kMtpTail, nullptr, Stage::kMtp},
    {Scope::kOnce, kLanguage, "", kOutputRows, nullptr, Stage::kOutput},
    {Scope::kOnce, kLanguage, "model.", kTiedOutputRows, nullptr, Stage::kTiedOutput},
    {Scope::kOnce, "image_insert_embedding.", "", kProjector, nullptr, Stage::kFirst, Tower::kVision},
};

constexpr Unread kUnread[] = {
    {"model.layers.{N}.transformer.shared_head.output.weight", "lm_head.weight", kMtpCopy, Needs::kUntied},
    {"model.layers.{N}.transformer.shared_head.output.weight", "model.embed_tokens.weight", kMtpCopy,
     Needs::kTied},
    {"lm_head.weight", "model.embed_tokens.weight", kTiedCopy, Needs::kTied},
};

constexpr std::string_view kTextTypes[] = {"step3p5"};
constexpr std::string_view kTypes[] = {"step3p7"};
constexpr Needs kHas[] = {Needs::kQkNorm, Needs::kExpertBias};

constexpr ConfigStep kDecoder[] = {
    size(kVocab, "vocab_size"),
    size(kHidden, "hidden_size"),
    size(kHeads, "num_attention_heads"),
    size(kKvGroups, "num_attention_groups", "num_key_value_heads"),
    size(member<&ModelConfig::text, &TowerConfig::head_dim>, "head_dim"),
    all_of(kDenseFfn),
    refused("attention_bias"),
    needed("use_head_wise_attn_gate", "is false; Megatron's model of this family has a gate for each head"),
    set(member<&ModelConfig::text, &TowerConfig::head_gates>, true),
    flag(kZeroCentered, "zero_centered", true),
    experts("moe_num_experts", "n_routed_experts"),
    size(kMoeFfn, "moe_intermediate_size"),
    size(kSharedFfn, "share_expert_dim", "share_expert_dims"),
    flag(kExpertBias, "use_moe_router_bias", false),
    mtp(16),
    part("step_layers"),
    layer_experts(),
};
constexpr ConfigStep kTextConfig[] = {flag(kQkNorm, "use_qk_norm", false), all_of(kDecoder)};
constexpr ConfigStep kNormedConfig[] = {flag(kQkNorm, "use_qk_norm", true), all_of(kDecoder)};
constexpr ConfigStep kVisionConfig[] = {part("step_vision")};
constexpr ConfigStep kConfig[] = {
    inside("text_config", kNormedConfig),
    flag(kTiedHead, "tie_word_embeddings", false),
    refused("projector_bias"),
    inside("vision_config", kVisionConfig),
};

constexpr Family kFamilies[] = {
    {.name = "step3p5",
     .model_types = kTextTypes,
     .architecture = "Step3p5ForCausalLM",
     .summary = "Step-3.5",
     .sections = kText,
     .unread = kUnread,
     .conditions = kHas,
     .config = kTextConfig,
     .facts = {"stepfun-ai/Step-3.5-Flash", "fp8 blocks", "1, ep2, pp2, tp2, tp2 ep4"}},
    {.name = "step3p7",
     .model_types = kTypes,
     .architecture = "Step3p7ForConditionalGeneration",
     .summary = "Step-3.7, with vision",
     .sections = kWithVision,
     .unread = kUnread,
     .conditions = kHas,
     .config = kConfig,
     .facts = {"stepfun-ai/Step-3.7-Flash", "fp8 blocks", "1, tp2"}},
};

}  // namespace

std::span<const Family> step_families() { return kFamilies; }

}  // namespace mckpt::impl
