// DeepSeek-V3: latent attention, a router with a bias for each expert, MTP layers whose numbers follow those
// of the decoder.
//
//   layer 61 of a model with 61 layers   model.layers.61.enorm.weight   <->   mtp.layers.0.enorm.weight
//                                        model.layers.61.mlp...         <->   mtp.layers.0.mtp_model_layer.mlp...
//
// Peculiar to this family:
// - Queries, keys and values come from low-rank projections (down, norm, up). A model without q_lora_rank has
//   a plain linear_q_proj.
// - The input norm is a parameter of its own; attention of other families has it in linear_qkv.
// - The bias of the router is a persistent buffer: always fp32, and not packed by FSDP.
// - An MTP layer of the file repeats the embedding and the output layer. These copies are not read (kUnread).
// - A padded vocabulary is a multiple of 1280 rows a cell.
#include "mappings/models/blocks.h"
#include "mappings/models/families.h"

namespace mckpt::impl {
namespace {

constexpr Row kLatentAttention[] = {
    {"input_layernorm.weight", "replicate", {{{"input_layernorm.weight", "hidden"}}}},
    {"self_attention.linear_proj.weight", "row", {{{"self_attn.o_proj.weight", "hidden mla_attention"}}}},
    {"self_attention.linear_q_proj.weight",
     "column",
     {{{"self_attn.q_proj.weight", "mla_q hidden"}}},
     Needs::kNoQueryLora},
    {"self_attention.linear_q_down_proj.weight",
     "replicate",
     {{{"self_attn.q_a_proj.weight", "q_lora hidden"}}},
     Needs::kQueryLora},
    {"self_attention.linear_q_up_proj.layer_norm_weight",
     "replicate",
     {{{"self_attn.q_a_layernorm.weight", "q_lora"}}},
     Needs::kQueryLora},
    {"self_attention.linear_q_up_proj.weight",
     "column",
     {{{"self_attn.q_b_proj.weight", "mla_q q_lora"}}},
     Needs::kQueryLora},
    {"self_attention.linear_kv_down_proj.weight",
     "replicate",
     {{{"self_attn.kv_a_proj_with_mqa.weight", "kv_down hidden"}}}},
    {"self_attention.linear_kv_up_proj.layer_norm_weight",
     "replicate",
     {{{"self_attn.kv_a_layernorm.weight", "kv_lora"}}}},
    {"self_attention.linear_kv_up_proj.weight",
     "column",
     {{{"self_attn.kv_b_proj.weight", "mla_kv kv_lora"}}}},
};

constexpr Row kMoe[] = {
    {"pre_mlp_layernorm.weight", "replicate", {{{"post_attention_layernorm.weight", "hidden"}}}},
    {"mlp.router.weight", "replicate", {{{"mlp.gate.weight", "experts hidden"}}}},
    {.megatron = "mlp.router.expert_bias",
     .rule = "replicate",
     .sources = {{{"mlp.gate.e_score_correction_bias", "experts"}}},
     .needs = Needs::kExpertBias,
     .buffer = true},
    {"mlp.experts.linear_fc1.weight{E}",
     "gated_mlp",
     {{{"mlp.experts.{E}.gate_proj.weight", "expert_ffn hidden"},
       {"mlp.experts.{E}.up_proj.weight", "expert_ffn hidden"}}},
     Needs::kExpertsApart,
     KeySplit::kSwiglu},
    {"mlp.experts.linear_fc1.weight{E}",
     "gated_expert",
     {{{"mlp.experts.gate_up_proj", "experts 2*expert_ffn hidden"}}},
     Needs::kExpertsFused,
     KeySplit::kSwiglu},
    {"mlp.experts.linear_fc2.weight{E}",
     "row",
     {{{"mlp.experts.{E}.down_proj.weight", "hidden expert_ffn"}}},
     Needs::kExpertsApart},
    {"mlp.experts.linear_fc2.weight{E}",
     "expert_row",
     {{{"mlp.experts.down_proj", "experts hidden expert_ffn"}}},
     Needs::kExpertsFused},
    {"mlp.shared_experts.linear_fc1.weight",
     "gated_mlp",
     {{{"mlp.shared_experts.gate_proj.weight", "shared_ffn hidden"},
       {"mlp.shared_experts.up_proj.weight", "shared_ffn hidden"}}},
     Needs::kSharedExpert,
     KeySplit::kSwiglu},
    {"mlp.shared_experts.linear_fc2.weight",
     "row",
     {{{"mlp.shared_experts.down_proj.weight", "hidden shared_ffn"}}},
     Needs::kSharedExpert},
};

constexpr Row kMtpHead[] = {
    {"enorm.weight", "replicate", {{{"enorm.weight", "hidden"}}}},
    {"hnorm.weight", "replicate", {{{"hnorm.weight", "hidden"}}}},
    {"eh_proj.weight", "column", {{{"eh_proj.weight", "hidden 2*hidden"}}}},
};
constexpr Row kMtpTail[] = {
    {"final_layernorm.weight", "replicate", {{{"shared_head.norm.weight", "hidden"}}}},
};

constexpr LayerRows kLayer = {.latent_attention = kLatentAttention, .dense = kDenseRows, .moe = kMoe};

constexpr Section kSections[] = {
    {Scope::kOnce, "", "model.", kEmbeddingRows, nullptr, Stage::kFirstAndMtp},
    {Scope::kLayers, "decoder.layers.{L}.", "model.layers.{L}.", {}, &kLayer},
    {Scope::kOnce, "", "model.", kFinalNormRows, nullptr, Stage::kLast},
    {Scope::kMtpHead, "mtp.layers.{M}.", "model.layers.{N}.", kMtpHead, nullptr, Stage::kLast},
    {Scope::kMtpLayers, "mtp.layers.{M}.mtp_model_layer.", "model.layers.{N}.", {}, &kLayer, Stage::kLast},
    {Scope::kMtpTail, "mtp.layers.{M}.", "model.layers.{N}.", kMtpTail, nullptr, Stage::kLast},
    {Scope::kOnce, "", "", kOutputRows, nullptr, Stage::kLast},
    {Scope::kOnce, "", "model.", kTiedOutputRows, nullptr, Stage::kLastOfMany},
};

constexpr std::string_view kMtpCopy = "MTP layers share the embedding and the output layer";
constexpr Unread kUnread[] = {
    {"model.layers.{N}.embed_tokens.weight", "model.embed_tokens.weight", kMtpCopy},
    {"model.layers.{N}.shared_head.head.weight", "lm_head.weight", kMtpCopy, Needs::kUntied},
    {"model.layers.{N}.shared_head.head.weight", "model.embed_tokens.weight", kMtpCopy, Needs::kTied},
    {"lm_head.weight", "model.embed_tokens.weight", kTiedCopy, Needs::kTied},
    {"model.layers.{L}.self_attn.rotary_emb.inv_freq", "", kRotary},
    {"model.layers.{N}.self_attn.rotary_emb.inv_freq", "", kRotary},
};

constexpr std::string_view kTypes[] = {"deepseek_v3"};
constexpr Needs kForms[] = {Needs::kExpertsApart, Needs::kExpertsFused};

constexpr Needs kHas[] = {Needs::kQueryLora, Needs::kNoQueryLora, Needs::kExpertBias, Needs::kSharedExpert};

constexpr Family kFamilies[] = {
    {"deepseek_v3",
     kTypes,
     "DeepseekV3ForCausalLM",
     "DeepSeek-V3 and R1, Moonlight",
     kSections,
     kUnread,
     kForms,
     kHas,
     {},
     1280},
};

}  // namespace

std::span<const Family> deepseek_v3_families() { return kFamilies; }

}  // namespace mckpt::impl
