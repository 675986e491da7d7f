// The rows that families share: attention, feed-forward, experts, MTP, the vision tower of Qwen. A family's
// own file lists only what is peculiar to it and names these lists in its sections. Rows of one list are in
// the order in which Megatron registers the parameters; the strings after the names are shapes in the words
// of mappings/shape_text.h.
#pragma once

#include <array>

#include "mappings/family.h"

namespace mckpt::impl {

// A parameter of a tower that Megatron takes over as Hugging Face's module: the name is the same on both
// sides, and every cell has the whole tensor.
constexpr Row copied(std::string_view name, std::string_view shape, Needs needs = Needs::kAlways) {
  return {.megatron = name, .rule = "replicate", .sources = {{{name, shape}}}, .needs = needs};
}

// A buffer of such a module, in the type of the model's parameters.
constexpr Row copied_buffer(std::string_view name, std::string_view shape, Needs needs = Needs::kAlways) {
  Row row = copied(name, shape, needs);
  row.buffer = row.typed_as_model = true;
  return row;
}

// The row of a module that saves no extra state.
constexpr Row stateless(Row row) {
  row.stateless = true;
  return row;
}

// Rows of attention and of a gated MLP that most families have.
inline constexpr Row kLinearProj = {
    "self_attention.linear_proj.weight", "row", {{{"self_attn.o_proj.weight", "hidden attention"}}}};
inline constexpr Row kFusedInputNorm = {
    "self_attention.linear_qkv.layer_norm_weight", "replicate", {{{"input_layernorm.weight", "hidden"}}}};
inline constexpr Row kQkv = {"self_attention.linear_qkv.weight",
                             "qkv",
                             {{{"self_attn.q_proj.weight", "q hidden"},
                               {"self_attn.k_proj.weight", "kv hidden"},
                               {"self_attn.v_proj.weight", "kv hidden"}}}};
inline constexpr Row kGatedFc1 = {
    "mlp.linear_fc1.weight",
    "gated_mlp",
    {{{"mlp.gate_proj.weight", "ffn hidden"}, {"mlp.up_proj.weight", "ffn hidden"}}},
    Needs::kAlways,
    KeySplit::kSwiglu};
inline constexpr Row kFc2 = {"mlp.linear_fc2.weight", "row", {{{"mlp.down_proj.weight", "hidden ffn"}}}};

inline constexpr Row kQueryNorm = {"self_attention.q_layernorm.weight",
                                   "replicate",
                                   {{{"self_attn.q_norm.weight", "head_dim"}}},
                                   Needs::kQkNorm};
inline constexpr Row kKeyNorm = {"self_attention.k_layernorm.weight",
                                 "replicate",
                                 {{{"self_attn.k_norm.weight", "head_dim"}}},
                                 Needs::kQkNorm};

// Grouped-query attention with Hugging Face names as in Llama; bias, query and key norms and softmax offsets
// if the model has them.
inline constexpr Row kAttentionRows[] = {
    {"self_attention.core_attention.softmax_offset",
     "column",
     {{{"self_attn.sinks", "heads"}}},
     Needs::kSinks},
    kLinearProj,
    {"self_attention.linear_proj.bias",
     "replicate",
     {{{"self_attn.o_proj.bias", "hidden"}}},
     Needs::kProjBias},
    kFusedInputNorm,
    kQkv,
    {"self_attention.linear_qkv.bias",
     "qkv",
     {{{"self_attn.q_proj.bias", "q"}, {"self_attn.k_proj.bias", "kv"}, {"self_attn.v_proj.bias", "kv"}}},
     Needs::kQkvBias},
    kQueryNorm,
    kKeyNorm,
};

// A dense gated MLP with Hugging Face names as in Llama. Megatron has the norm before it in its first linear
// layer.
inline constexpr Row kDenseRows[] = {
    {"mlp.linear_fc1.layer_norm_weight", "replicate", {{{"post_attention_layernorm.weight", "hidden"}}}},
    kGatedFc1,
    kFc2,
};

// The mixture of experts of Qwen, with the expert weights in any of their three storage forms.
inline constexpr Row kQwenRouter = {
    "mlp.router.weight", "replicate", {{{"mlp.gate.weight", "experts hidden"}}}};
inline constexpr Row kQwenFc1Apart = {"mlp.experts.linear_fc1.weight{E}",
                                      "gated_mlp",
                                      {{{"mlp.experts.{E}.gate_proj.weight", "expert_ffn hidden"},
                                        {"mlp.experts.{E}.up_proj.weight", "expert_ffn hidden"}}},
                                      Needs::kExpertsApart,
                                      KeySplit::kSwiglu};
inline constexpr Row kQwenFc1Fused = {"mlp.experts.linear_fc1.weight{E}",
                                      "gated_expert",
                                      {{{"mlp.experts.gate_up_proj", "experts 2*expert_ffn hidden"}}},
                                      Needs::kExpertsFused,
                                      KeySplit::kSwiglu};
inline constexpr Row kQwenFc1Hub = {"mlp.experts.linear_fc1.weight{E}",
                                    "gated_expert_transposed",
                                    {{{"mlp.experts.gate_up_proj", "experts hidden 2*expert_ffn"}}},
                                    Needs::kExpertsHub,
                                    KeySplit::kSwiglu};
inline constexpr Row kQwenFc2Apart = {"mlp.experts.linear_fc2.weight{E}",
                                      "row",
                                      {{{"mlp.experts.{E}.down_proj.weight", "hidden expert_ffn"}}},
                                      Needs::kExpertsApart};
inline constexpr Row kQwenFc2Fused = {"mlp.experts.linear_fc2.weight{E}",
                                      "expert_row",
                                      {{{"mlp.experts.down_proj", "experts hidden expert_ffn"}}},
                                      Needs::kExpertsFused};
inline constexpr Row kQwenFc2Hub = {"mlp.experts.linear_fc2.weight{E}",
                                    "expert_row_transposed",
                                    {{{"mlp.experts.down_proj", "experts expert_ffn hidden"}}},
                                    Needs::kExpertsHub};
inline constexpr Row kQwenSharedGate = {"mlp.shared_experts.gate_weight",
                                        "replicate",
                                        {{{"mlp.shared_expert_gate.weight", "1 hidden"}}},
                                        Needs::kSharedGate};
inline constexpr Row kQwenSharedFc1 = {"mlp.shared_experts.linear_fc1.weight",
                                       "gated_mlp",
                                       {{{"mlp.shared_expert.gate_proj.weight", "shared_ffn hidden"},
                                         {"mlp.shared_expert.up_proj.weight", "shared_ffn hidden"}}},
                                       Needs::kSharedExpert,
                                       KeySplit::kSwiglu};
inline constexpr Row kQwenSharedFc2 = {"mlp.shared_experts.linear_fc2.weight",
                                       "row",
                                       {{{"mlp.shared_expert.down_proj.weight", "hidden shared_ffn"}}},
                                       Needs::kSharedExpert};
inline constexpr Row kQwenMoeRows[] = {
    {"pre_mlp_layernorm.weight", "replicate", {{{"post_attention_layernorm.weight", "hidden"}}}},
    kQwenRouter,
    kQwenFc1Apart,
    kQwenFc1Fused,
    kQwenFc1Hub,
    kQwenFc2Apart,
    kQwenFc2Fused,
    kQwenFc2Hub,
    kQwenSharedGate,
    kQwenSharedFc1,
    kQwenSharedFc2,
};

// Follows the prefix of the decoder, "model.".
inline constexpr Row kEmbeddingRows[] = {
    {"embedding.word_embeddings.weight", "vocab", {{{"embed_tokens.weight", "vocab hidden"}}}},
};
inline constexpr Row kFinalNormRows[] = {
    {"decoder.final_layernorm.weight", "replicate", {{{"norm.weight", "hidden"}}}},
};
// A tied output layer is the embedding; if they are on different stages, the last stage has a copy.
inline constexpr Row kTiedOutputRows[] = {
    {"output_layer.weight", "vocab", {{{"embed_tokens.weight", "vocab hidden"}}}, Needs::kTied},
};
// Without a prefix.
inline constexpr Row kOutputRows[] = {
    {"output_layer.weight", "vocab", {{{"lm_head.weight", "vocab hidden"}}}, Needs::kUntied},
};

// A language model by itself, in the order in which Megatron registers the parameters.
constexpr std::array<Section, 5> text_sections(const LayerRows& layer) {
  return {{
      {Scope::kOnce, "", "model.", kEmbeddingRows},
      {Scope::kLayers, "decoder.layers.{L}.", "model.layers.{L}.", {}, &layer},
      {Scope::kOnce, "", "model.", kFinalNormRows, nullptr, Stage::kFinalNorm},
      {Scope::kOnce, "", "", kOutputRows, nullptr, Stage::kOutput},
      {Scope::kOnce, "", "model.", kTiedOutputRows, nullptr, Stage::kTiedOutput},
  }};
}

// Multi-token prediction of Qwen. The file has one depth; the names before and after its layer have no
// number.
inline constexpr Row kQwenMtpHeadRows[] = {
    {"enorm.weight", "replicate", {{{"pre_fc_norm_embedding.weight", "hidden"}}}},
    {"hnorm.weight", "replicate", {{{"pre_fc_norm_hidden.weight", "hidden"}}}},
    {"eh_proj.weight", "column", {{{"fc.weight", "hidden 2*hidden"}}}},
};
inline constexpr Row kQwenMtpTailRows[] = {
    {"final_layernorm.weight", "replicate", {{{"norm.weight", "hidden"}}}},
};

// A language model by itself that may have such layers.
constexpr std::array<Section, 8> qwen_sections(const LayerRows& layer) {
  return {{
      {Scope::kOnce, "", "model.", kEmbeddingRows, nullptr, Stage::kFirstAndMtp},
      {Scope::kLayers, "decoder.layers.{L}.", "model.layers.{L}.", {}, &layer},
      {Scope::kOnce, "", "model.", kFinalNormRows, nullptr, Stage::kFinalNorm},
      {Scope::kMtpHead, "mtp.layers.{M}.", "mtp.", kQwenMtpHeadRows, nullptr, Stage::kMtp},
      {Scope::kMtpLayers, "mtp.layers.{M}.mtp_model_layer.", "mtp.layers.{M}.", {}, &layer, Stage::kMtp},
      {Scope::kMtpTail, "mtp.layers.{M}.", "mtp.", kQwenMtpTailRows, nullptr, Stage::kMtp},
      {Scope::kOnce, "", "", kOutputRows, nullptr, Stage::kOutput},
      {Scope::kOnce, "", "model.", kTiedOutputRows, nullptr, Stage::kTiedOutput},
  }};
}

// The vision tower of Qwen3-VL and Qwen3.5, after "vision_model." and "model.visual.".
inline constexpr Row kVisionFrontRows[] = {
    copied("patch_embed.proj.weight", "hidden channels temporal_patch patch patch"),
    copied("patch_embed.proj.bias", "hidden"),
    copied("pos_embed.weight", "positions hidden"),
};
inline constexpr Row kVisionAttentionRows[] = {
    {"self_attention.linear_proj.weight", "row", {{{"attn.proj.weight", "hidden attention"}}}},
    {"self_attention.linear_proj.bias", "replicate", {{{"attn.proj.bias", "hidden"}}}},
    {"self_attention.linear_qkv.layer_norm_weight", "replicate", {{{"norm1.weight", "hidden"}}}},
    {"self_attention.linear_qkv.layer_norm_bias", "replicate", {{{"norm1.bias", "hidden"}}}},
    {"self_attention.linear_qkv.weight", "qkv_joined", {{{"attn.qkv.weight", "qkv hidden"}}}},
    {"self_attention.linear_qkv.bias", "qkv_joined", {{{"attn.qkv.bias", "qkv"}}}},
};
inline constexpr Row kVisionDenseRows[] = {
    {"mlp.linear_fc1.layer_norm_weight", "replicate", {{{"norm2.weight", "hidden"}}}},
    {"mlp.linear_fc1.layer_norm_bias", "replicate", {{{"norm2.bias", "hidden"}}}},
    {"mlp.linear_fc1.weight", "column", {{{"mlp.linear_fc1.weight", "ffn hidden"}}}},
    {"mlp.linear_fc1.bias", "column", {{{"mlp.linear_fc1.bias", "ffn"}}}},
    {"mlp.linear_fc2.weight", "row", {{{"mlp.linear_fc2.weight", "hidden ffn"}}}},
    {"mlp.linear_fc2.bias", "replicate", {{{"mlp.linear_fc2.bias", "hidden"}}}},
};
inline constexpr LayerRows kVisionLayer = {.attention = kVisionAttentionRows, .dense = kVisionDenseRows};
// The layers of the same tower as a module of Hugging Face's.
inline constexpr Row kCopiedVisionRows[] = {
    copied("norm1.weight", "hidden"),
    copied("norm1.bias", "hidden"),
    copied("norm2.weight", "hidden"),
    copied("norm2.bias", "hidden"),
    copied("attn.qkv.weight", "qkv hidden"),
    copied("attn.qkv.bias", "qkv"),
    copied("attn.proj.weight", "hidden attention"),
    copied("attn.proj.bias", "hidden"),
    copied("mlp.linear_fc1.weight", "ffn hidden"),
    copied("mlp.linear_fc1.bias", "ffn"),
    copied("mlp.linear_fc2.weight", "hidden ffn"),
    copied("mlp.linear_fc2.bias", "hidden"),
};
inline constexpr LayerRows kCopiedVisionLayer = {.attention = kCopiedVisionRows};
// The rows before and behind the layers in the tower of Qwen2.5, which is such a module too.
inline constexpr Row kQwen25FrontRows[] = {
    copied("patch_embed.proj.weight", "hidden channels temporal_patch patch patch"),
};
inline constexpr Row kQwen25MergerRows[] = {
    copied("merger.ln_q.weight", "hidden"),    copied("merger.mlp.0.weight", "merged merged"),
    copied("merger.mlp.0.bias", "merged"),     copied("merger.mlp.2.weight", "out_hidden merged"),
    copied("merger.mlp.2.bias", "out_hidden"),
};
// A merger joins the patches of a square and maps them to the language model. A deepstack merger has its norm
// after the joining, the last merger before it.
constexpr std::array<Row, 6> merger_rows(std::string_view norm) {
  return {{
      {"patch_norm.weight", "replicate", {{{"norm.weight", norm}}}},
      {"patch_norm.bias", "replicate", {{{"norm.bias", norm}}}},
      {"linear_fc1.weight", "column", {{{"linear_fc1.weight", "merged merged"}}}},
      {"linear_fc1.bias", "column", {{{"linear_fc1.bias", "merged"}}}},
      {"linear_fc2.weight", "row", {{{"linear_fc2.weight", "out_hidden merged"}}}},
      {"linear_fc2.bias", "replicate", {{{"linear_fc2.bias", "out_hidden"}}}},
  }};
}
inline constexpr auto kDeepstackRows = merger_rows("merged"), kMergerRows = merger_rows("hidden");

// Released models have a tensor for each expert; transformers 5 writes all experts as one tensor.
inline constexpr Needs kQwenExpertForms[] = {Needs::kExpertsApart, Needs::kExpertsFused};

// Reasons why a tensor of the file is not read, for Unread rows.
inline constexpr std::string_view kRotary = "rotary frequencies, which Megatron computes";
inline constexpr std::string_view kTiedCopy = "the output layer is tied to the embedding";

}  // namespace mckpt::impl
