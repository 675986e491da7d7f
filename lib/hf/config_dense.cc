// The readers of dense families beside Llama and Qwen: Mistral, Seed-OSS, Gemma, EXAONE, OLMo, GLM-4,
// Nemotron. What differs in their norms is in their tables; a reader gives sizes, biases, the activation and
// the defaults of transformers.
#include "hf/config_fields.h"
#include "hf/config_parts.h"
#include "hf/config_readers.h"
#include "mappings/config.h"

namespace mckpt::impl {
namespace {

// Gemma's activation is GELU under all of its names, and transformers ties the output layer by default.
void read_gemma_decoder(const ConfigFields& c, ModelConfig& m, const HeadDefaults& defaults) {
  read_dense_decoder(c, m, defaults);
  m.text.swiglu = false;
  m.zero_centered_norms = true;
  m.tied = c.flag_or("tie_word_embeddings", true);
}

}  // namespace

void read_mistral(const ConfigFields& c, ModelConfig& m) {
  read_dense_decoder(c, m, {.kv_groups = 8, .null_groups_are_heads = true});
}

void read_seed_oss(const ConfigFields& c, ModelConfig& m) {
  read_text(c, m, {.kv_groups = 8, .head_dim = 128, .null_groups_are_heads = true});
  read_dense_ffn(c, m);
  refuse_flag(c, "mlp_bias");
  m.text.qkv_bias = c.flag_or("attention_bias", true);
  m.text.proj_bias = c.flag_or("attention_out_bias", false);
  set_layers(m, layer_count(c, "num_hidden_layers"), {});
}

void read_gemma(const ConfigFields& c, ModelConfig& m) {
  read_gemma_decoder(c, m, {.kv_groups = 16, .head_dim = 256});
}

void read_gemma2(const ConfigFields& c, ModelConfig& m) {
  read_gemma_decoder(c, m, {.kv_groups = 4, .head_dim = 256});
}

void read_gemma3_text(const ConfigFields& c, ModelConfig& m) {
  read_gemma2(c, m);
  m.text.qk_norm = true;
}

void read_exaone4(const ConfigFields& c, ModelConfig& m) {
  read_dense_decoder(c, m, {.kv_groups = 32});
  m.text.qk_norm = true;
}

void read_olmo2(const ConfigFields& c, ModelConfig& m) {
  read_dense_decoder(c, m, {});
  m.text.qk_norm = true;
}

void read_glm4(const ConfigFields& c, ModelConfig& m) {
  read_text(c, m, {.kv_groups = 2, .head_dim = 128});
  read_dense_ffn(c, m);
  m.text.qkv_bias = c.flag_or("attention_bias", true);
  set_layers(m, layer_count(c, "num_hidden_layers"), {});
}

void read_nemotron(const ConfigFields& c, ModelConfig& m) {
  read_dense_decoder(c, m, {});
  m.text.gated_mlp = m.text.swiglu = false;
  m.layer_norms = m.zero_centered_norms = true;
}

}  // namespace mckpt::impl
