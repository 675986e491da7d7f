// The rows that DeepSeek's families share, and families that took them over: latent attention, experts beside
// a shared one with a router that has a bias for each expert, and prediction layers whose numbers follow the
// decoder's:
//
//   layer 61 of a model with 61 layers   model.layers.61.enorm.weight   <->   mtp.layers.0.enorm.weight
//                                        model.layers.61.mlp...         <->   mtp.layers.0.mtp_model_layer.mlp...
#pragma once

#include "mappings/models/blocks.h"

namespace mckpt::impl {

// Queries, keys and values come from low-rank projections (down, norm, up). A model without q_lora_rank has a
// plain linear_q_proj. The input norm is a parameter of its own; other attention has it in linear_qkv.
inline constexpr Row kInputNormRow = {
    "input_layernorm.weight", "replicate", {{{"input_layernorm.weight", "hidden"}}}};
inline constexpr Row kLatentProjRow = {
    "self_attention.linear_proj.weight", "row", {{{"self_attn.o_proj.weight", "hidden mla_attention"}}}};
inline constexpr Row kPlainQueryRow = {"self_attention.linear_q_proj.weight",
                                       "column",
                                       {{{"self_attn.q_proj.weight", "mla_q hidden"}}},
                                       Needs::kNoQueryLora};
inline constexpr Row kQueryDownRow = {"self_attention.linear_q_down_proj.weight",
                                      "replicate",
                                      {{{"self_attn.q_a_proj.weight", "q_lora hidden"}}},
                                      Needs::kQueryLora};
inline constexpr Row kQueryUpRow = {"self_attention.linear_q_up_proj.weight",
                                    "column",
                                    {{{"self_attn.q_b_proj.weight", "mla_q q_lora"}}},
                                    Needs::kQueryLora};
inline constexpr Row kKeyDownRow = {"self_attention.linear_kv_down_proj.weight",
                                    "replicate",
                                    {{{"self_attn.kv_a_proj_with_mqa.weight", "kv_down hidden"}}}};
inline constexpr Row kKeyUpRow = {"self_attention.linear_kv_up_proj.weight",
                                  "column",
                                  {{{"self_attn.kv_b_proj.weight", "mla_kv kv_lora"}}}};

inline constexpr Row kLatentAttentionRows[] = {
    kInputNormRow,
    kLatentProjRow,
    kPlainQueryRow,
    kQueryDownRow,
    {"self_attention.linear_q_up_proj.layer_norm_weight",
     "replicate",
     {{{"self_attn.q_a_layernorm.weight", "q_lora"}}},
     Needs::kQueryLora},
    kQueryUpRow,
    kKeyDownRow,
    {"self_attention.linear_kv_up_proj.layer_norm_weight",
     "replicate",
     {{{"self_attn.kv_a_layernorm.weight", "kv_lora"}}}},
    kKeyUpRow,
};

// Parts of a layer with experts that many families spell alike.
inline constexpr Row kMoeNormRow = {
    "pre_mlp_layernorm.weight", "replicate", {{{"post_attention_layernorm.weight", "hidden"}}}};
inline constexpr Row kRouterRow = {
    "mlp.router.weight", "replicate", {{{"mlp.gate.weight", "experts hidden"}}}};
inline constexpr Row kApartUpRow = {"mlp.experts.linear_fc1.weight{E}",
                                    "gated_mlp",
                                    {{{"mlp.experts.{E}.gate_proj.weight", "expert_ffn hidden"},
                                      {"mlp.experts.{E}.up_proj.weight", "expert_ffn hidden"}}},
                                    Needs::kExpertsApart,
                                    KeySplit::kSwiglu};
inline constexpr Row kFusedUpRow = {"mlp.experts.linear_fc1.weight{E}",
                                    "gated_expert",
                                    {{{"mlp.experts.gate_up_proj", "experts 2*expert_ffn hidden"}}},
                                    Needs::kExpertsFused,
                                    KeySplit::kSwiglu};
inline constexpr Row kApartDownRow = {"mlp.experts.linear_fc2.weight{E}",
                                      "row",
                                      {{{"mlp.experts.{E}.down_proj.weight", "hidden expert_ffn"}}},
                                      Needs::kExpertsApart};
inline constexpr Row kFusedDownRow = {"mlp.experts.linear_fc2.weight{E}",
                                      "expert_row",
                                      {{{"mlp.experts.down_proj", "experts hidden expert_ffn"}}},
                                      Needs::kExpertsFused};
inline constexpr Row kSharedUpRow = {"mlp.shared_experts.linear_fc1.weight",
                                     "gated_mlp",
                                     {{{"mlp.shared_experts.gate_proj.weight", "shared_ffn hidden"},
                                       {"mlp.shared_experts.up_proj.weight", "shared_ffn hidden"}}},
                                     Needs::kSharedExpert,
                                     KeySplit::kSwiglu};
inline constexpr Row kSharedDownRow = {"mlp.shared_experts.linear_fc2.weight",
                                       "row",
                                       {{{"mlp.shared_experts.down_proj.weight", "hidden shared_ffn"}}},
                                       Needs::kSharedExpert};

// The bias of the router is a persistent buffer: always fp32, and not packed by FSDP.
constexpr Row expert_bias_row(std::string_view name) {
  return {.megatron = "mlp.router.expert_bias",
          .rule = "replicate",
          .sources = {{{name, "experts"}}},
          .needs = Needs::kExpertBias,
          .buffer = true};
}

inline constexpr Row kDeepseekMoeRows[] = {
    kMoeNormRow,   kRouterRow,   expert_bias_row("mlp.gate.e_score_correction_bias"),
    kApartUpRow,   kFusedUpRow,  kApartDownRow,
    kFusedDownRow, kSharedUpRow, kSharedDownRow,
};

inline constexpr Row kNumberedMtpHeadRows[] = {
    {"enorm.weight", "replicate", {{{"enorm.weight", "hidden"}}}},
    {"hnorm.weight", "replicate", {{{"hnorm.weight", "hidden"}}}},
    {"eh_proj.weight", "column", {{{"eh_proj.weight", "hidden 2*hidden"}}}},
};
inline constexpr Row kNumberedMtpTailRows[] = {
    {"final_layernorm.weight", "replicate", {{{"shared_head.norm.weight", "hidden"}}}},
};

// The sections of a model whose layers, those for prediction too, have the rows of `layer`.
constexpr std::array<Section, 8> numbered_mtp_sections(const LayerRows& layer) {
  return {
      {{Scope::kOnce, "", "model.", kEmbeddingRows, nullptr, Stage::kFirstAndMtp},
       {Scope::kLayers, "decoder.layers.{L}.", "model.layers.{L}.", {}, &layer},
       {Scope::kOnce, "", "model.", kFinalNormRows, nullptr, Stage::kFinalNorm},
       {Scope::kMtpHead, "mtp.layers.{M}.", "model.layers.{N}.", kNumberedMtpHeadRows, nullptr, Stage::kMtp},
       {Scope::kMtpLayers, "mtp.layers.{M}.mtp_model_layer.", "model.layers.{N}.", {}, &layer, Stage::kMtp},
       {Scope::kMtpTail, "mtp.layers.{M}.", "model.layers.{N}.", kNumberedMtpTailRows, nullptr, Stage::kMtp},
       {Scope::kOnce, "", "", kOutputRows, nullptr, Stage::kOutput},
       {Scope::kOnce, "", "model.", kTiedOutputRows, nullptr, Stage::kTiedOutput}}};
}

// A prediction layer of the file repeats the embedding and the output layer. These copies are not read.
inline constexpr std::string_view kMtpCopy = "MTP layers share the embedding and the output layer";
inline constexpr Unread kNumberedMtpUnread[] = {
    {"model.layers.{N}.embed_tokens.weight", "model.embed_tokens.weight", kMtpCopy},
    {"model.layers.{N}.shared_head.head.weight", "lm_head.weight", kMtpCopy, Needs::kUntied},
    {"model.layers.{N}.shared_head.head.weight", "model.embed_tokens.weight", kMtpCopy, Needs::kTied},
    {"lm_head.weight", "model.embed_tokens.weight", kTiedCopy, Needs::kTied},
    {"model.layers.{L}.self_attn.rotary_emb.inv_freq", "", kRotary},
    {"model.layers.{N}.self_attn.rotary_emb.inv_freq", "", kRotary},
};

}  // namespace mckpt::impl
