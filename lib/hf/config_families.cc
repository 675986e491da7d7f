// The readers of Llama and gpt-oss, and the table of all readers. A new family is a function like these and a
// row of the table; config_parts.h has what families share.
#include "hf/config_families.h"

#include "core/base/error.h"
#include "hf/config_fields.h"
#include "hf/config_parts.h"
#include "hf/config_readers.h"
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

// One row of the table.
struct ReaderRow {
  std::string_view family;
  FamilyReader read;
};

constexpr ReaderRow kReaders[] = {
    {"llama", read_llama},
    {"mistral", read_mistral},
    {"seed_oss", read_seed_oss},
    {"gemma", read_gemma},
    {"gemma2", read_gemma2},
    {"gemma3_text", read_gemma3_text},
    {"exaone4", read_exaone4},
    {"olmo2", read_olmo2},
    {"olmo3", read_olmo2},
    {"glm4", read_glm4},
    {"nemotron", read_nemotron},
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
    {"deepseek_v2", read_deepseek_v2},
    {"glm4_moe_lite", read_glm4_moe_lite},
    {"glm_moe_dsa", read_glm_moe_dsa},
    {"deepseek_v32", read_deepseek_v32},
    {"glm4_moe", read_glm4_moe},
    {"qwen2_moe", read_qwen2_moe},
    {"olmoe", read_olmoe},
    {"mixtral", read_mixtral},
    {"minimax_m2", read_minimax_m2},
    {"hy_v3", read_hy_v3},
    {"exaone_moe", read_exaone_moe},
    {"ernie4_5_moe", read_ernie4_5_moe},
    {"gpt_oss", read_gpt_oss},
    {"qwen2_5_vl", read_qwen2_5_vl},
    {"qwen2_audio", read_qwen2_audio},
    {"qwen3_omni_moe", read_qwen3_omni_moe},
    {"mistral3", read_mistral3},
    {"gemma3", read_gemma3},
    {"gemma4_text", read_gemma4_text},
    {"gemma4", read_gemma4},
    {"glm4v_moe", read_glm4v_moe},
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
