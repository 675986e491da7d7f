// The readers of families with grouped-query attention and experts beside Qwen and GLM: OLMoE, Mixtral,
// MiniMax-M2, Hunyuan-V3, EXAONE-MoE, ERNIE 4.5. OLMoE, Mixtral and MiniMax have no dense layers, so
// intermediate_size is the width of an expert.
#include "core/base/error.h"
#include "core/base/text.h"
#include "hf/config_fields.h"
#include "hf/config_parts.h"
#include "hf/config_readers.h"
#include "mappings/config.h"

namespace mckpt::impl {
namespace {

// Attention without biases, and experts in every layer.
void read_all_experts(const ConfigFields& c, ModelConfig& m, const HeadDefaults& defaults,
                      std::initializer_list<std::string_view> keys) {
  read_text(c, m, defaults);
  refuse_flag(c, "attention_bias");
  m.text.swiglu = c.text_or("hidden_act", "silu") == "silu";
  m.moe.experts = read_experts(c, keys);
  m.moe.ffn = c.size("intermediate_size");
  set_layers(m, layer_count(c, "num_hidden_layers"), {Mixer::kAttention, Ffn::kMoe});
  check_layer_experts(c, m);
}

// Norms of q and k, dense layers first, and experts with a bias beside `num_shared_experts` shared ones.
void read_biased_experts(const ConfigFields& c, ModelConfig& m, const HeadDefaults& defaults) {
  read_text(c, m, defaults);
  read_dense_ffn(c, m);
  refuse_flag(c, "attention_bias");
  refuse_flag(c, "mlp_bias");
  m.text.qk_norm = true;
  read_moe(c, m, {"num_experts", "num_local_experts"});
  m.moe.shared_ffn =
      checked_mul(c.count_or("num_shared_experts", 1), m.moe.ffn, "the width of the shared experts");
  m.moe.expert_bias = true;
  set_layers(m, layer_count(c, "num_hidden_layers"), {});
  choose_dense_layers(c, m, 1);
  check_layer_experts(c, m);
}

}  // namespace

void read_olmoe(const ConfigFields& c, ModelConfig& m) {
  read_all_experts(c, m, {}, {"num_experts", "num_local_experts"});
  m.text.qk_norm = true;
  if (m.text.kv_groups != m.text.heads)
    throw c
        .unsupported(
            "num_key_value_heads",
            "is not the number of query heads; Megatron's model of this family norms as many keys as queries")
        .expected(m.text.heads)
        .found(m.text.kv_groups);
}

void read_mixtral(const ConfigFields& c, ModelConfig& m) {
  read_all_experts(c, m, {.kv_groups = 8, .null_groups_are_heads = true},
                   {"num_local_experts", "num_experts"});
}

void read_minimax_m2(const ConfigFields& c, ModelConfig& m) {
  read_all_experts(c, m, {.kv_groups = 8, .head_dim = 128}, {"num_local_experts", "num_experts"});
  m.text.qk_norm = m.moe.expert_bias = true;
}

void read_hy_v3(const ConfigFields& c, ModelConfig& m) {
  read_biased_experts(c, m, {.kv_groups = 8, .head_dim = 128});
}

void read_exaone_moe(const ConfigFields& c, ModelConfig& m) { read_biased_experts(c, m, {.kv_groups = 32}); }

// Layer n has experts if it is in the range and the interval divides n + 1. An end of -1 is the last layer.
void read_ernie4_5_moe(const ConfigFields& c, ModelConfig& m) {
  read_text(c, m, {.kv_groups = 4});
  read_dense_ffn(c, m);
  refuse_flag(c, "use_bias");
  m.tied = c.flag_or("tie_word_embeddings", true);
  m.moe.experts = read_experts(c, {"moe_num_experts", "num_local_experts", "num_experts"});
  m.moe.ffn = c.size("moe_intermediate_size");
  m.moe.shared_ffn =
      checked_mul(c.count_or("moe_num_shared_experts", 2), m.moe.ffn, "the width of the shared experts");
  m.moe.expert_bias = true;
  i64 layers = layer_count(c, "num_hidden_layers"), every = c.size_or("moe_layer_interval", 1);
  i64 begin = c.count_or("moe_layer_start_index", 1);
  bool to_end = c.real_or("moe_layer_end_index", -1) < 0;
  i64 end = to_end ? layers - 1 : c.count_or("moe_layer_end_index", 0);
  set_layers(m, layers, {});
  for (i64 n = begin; n <= std::min(end, layers - 1); n++)
    if ((n + 1) % every == 0) m.text.layers[n].ffn = Ffn::kMoe;
  check_layer_experts(c, m);
}

}  // namespace mckpt::impl
