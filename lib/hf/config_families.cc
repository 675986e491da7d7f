// The readers of Llama, gpt-oss and DeepSeek V3, and the table of all readers. A new family is a function
// like these and a row of the table; config_parts.h has what families share.
#include "hf/config_families.h"

#include "core/base/error.h"
#include "hf/config_fields.h"
#include "hf/config_parts.h"
#include "mappings/config.h"

namespace mckpt::impl {

void read_llama(const ConfigFields& c, ModelConfig& m) { read_dense_decoder(c, m, {}); }

namespace {

// gpt-oss: attention with sinks and biases, experts in every layer with a biased router.
void read_gpt_oss(const ConfigFields& c, ModelConfig& m) {
  read_text(c, m, {.kv_groups = 8, .head_dim = 64});
  TowerConfig& t = m.text;
  t.qkv_bias = t.proj_bias = t.sinks = true;
  t.swiglu = false;  // a gated activation, but no SiLU
  if (!c.flag_or("attention_bias", true))
    throw c.unsupported("attention_bias", "is false; gpt-oss has biases");
  set_layers(m, layer_count(c, "num_hidden_layers"), {Mixer::kAttention, Ffn::kMoe});
  m.moe.experts = read_experts(c, {"num_local_experts", "num_experts"});
  m.moe.ffn = c.size("intermediate_size");
  m.moe.router_bias = true;
  check_layer_experts(c, m);
}

// The ranks and head sizes of latent attention (MLA). q_lora_rank is missing in models without a low-rank
// query.
void read_mla(const ConfigFields& c, MlaConfig& mla) {
  mla.q_lora = c.has("q_lora_rank") ? c.size("q_lora_rank") : 0;
  mla.kv_lora = c.size("kv_lora_rank");
  mla.nope = c.size("qk_nope_head_dim");
  mla.rope = c.size("qk_rope_head_dim");
  mla.v_dim = c.size("v_head_dim");
}

// DeepSeek V3: latent attention, dense layers first, then experts in every moe_layer_freq-th layer.
void read_deepseek_v3(const ConfigFields& c, ModelConfig& m) {
  m.vocab = c.size("vocab_size");
  m.text.hidden = c.size("hidden_size");
  m.text.heads = m.text.kv_groups = c.size("num_attention_heads");
  refuse_flag(c, "attention_bias");
  read_dense_ffn(c, m);
  read_mla(c, m.mla);
  m.text.head_dim = m.mla.nope + m.mla.rope;
  m.moe.experts = read_experts(c, {"n_routed_experts", "num_local_experts"});
  m.moe.ffn = c.size("moe_intermediate_size");
  m.moe.shared_ffn =
      checked_mul(c.count_or("n_shared_experts", 0), m.moe.ffn, "the width of the shared experts");
  m.moe.expert_bias = true;
  i64 layers = layer_count(c, "num_hidden_layers");
  i64 first = c.count_or("first_k_dense_replace", 0), every = c.size_or("moe_layer_freq", 1);
  set_layers(m, layers, {Mixer::kLatentAttention, Ffn::kDense});
  for (i64 n = first; n < layers; n++)
    if (n % every == 0) m.text.layers[n].ffn = Ffn::kMoe;
  check_layer_experts(c, m);
  read_mtp(c, m, 16, {Mixer::kLatentAttention, Ffn::kMoe});
}

// One row of the table.
struct ReaderRow {
  std::string_view family;
  FamilyReader read;
};

constexpr ReaderRow kReaders[] = {
    {"llama", read_llama},
    {"qwen2", read_qwen2},
    {"qwen3", read_qwen3},
    {"qwen3_moe", read_qwen3_moe},
    {"qwen3_next", read_qwen3_next},
    {"qwen3_5", read_qwen3_5},
    {"qwen3_5_moe", read_qwen3_5_moe},
    {"qwen3_5_text", read_qwen3_5_text},
    {"qwen3_5_moe_text", read_qwen3_next},
    {"qwen3_vl", read_qwen3_vl},
    {"qwen3_vl_moe", read_qwen3_vl_moe},
    {"nemotron_h", read_nemotron_h},
    {"deepseek_v3", read_deepseek_v3},
    {"gpt_oss", read_gpt_oss},
    {"qwen2_5_vl", read_qwen2_5_vl},
    {"qwen2_audio", read_qwen2_audio},
    {"qwen3_omni_moe", read_qwen3_omni_moe},
    {"mistral3", read_mistral3},
    {"bailing_moe_v2", read_bailing_moe},
    {"sarvam_moe", read_bailing_moe},
    {"mimo", read_mimo},
    {"falcon_h1", read_falcon_h1},
    {"minimax_m3_vl", read_minimax_m3},
};

}  // namespace

FamilyReader family_reader(std::string_view family) {
  for (const ReaderRow& row : kReaders)
    if (row.family == family) return row.read;
  throw Error(Code::kInternal, cat("no reader of configs for the family ", family));
}

}  // namespace mckpt::impl
