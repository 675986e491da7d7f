// The readers of Qwen2 to Qwen3.6: dense, with experts, with gated delta nets (GDN), and with vision. Each
// reader adds to that of an older family:
//
//   qwen2 = llama + biases of q, k, v           qwen3_next = gated decoder (GDN, output gate) + experts
//   qwen3 = llama + norms of q and k            qwen3_5 = qwen3_5_text or qwen3_next + vision
#include <algorithm>

#include "core/base/error.h"
#include "core/base/text.h"
#include "hf/config_fields.h"
#include "hf/config_parts.h"
#include "hf/config_readers.h"
#include "hf/config_towers.h"
#include "mappings/config.h"

namespace mckpt::impl {
namespace {

// Decides which layers have experts. Layer n has experts unless mlp_only_layers names it or
// decoder_sparse_step skips it: with a step of 2, layers 1, 3, 5, ... have experts.
void choose_sparse_layers(const ConfigFields& c, ModelConfig& m) {
  i64 step = c.size_or("decoder_sparse_step", 1);
  std::vector<i64> dense = c.numbers_or_none("mlp_only_layers");
  i64 layers = static_cast<i64>(m.text.layers.size());
  for (i64 n : dense)
    if (n < 0 || n >= layers)
      throw c.error("mlp_only_layers", "names a layer that does not exist")
          .expected(cat("0 to ", layers - 1))
          .found(n);
  for (i64 n = 0; n < layers; n++) {
    bool named = std::find(dense.begin(), dense.end(), n) != dense.end();
    m.text.layers[n].ffn = !named && (n + 1) % step == 0 ? Ffn::kMoe : Ffn::kDense;
  }
  auto is_dense = [](const LayerSpec& layer) { return layer.ffn == Ffn::kDense; };
  if (std::any_of(m.text.layers.begin(), m.text.layers.end(), is_dense))
    m.text.ffn = c.size("intermediate_size");
}

// The experts of the Qwen families: routed experts, an optional shared expert with a gate, and the layers
// that have them.
void read_qwen_experts(const ConfigFields& c, ModelConfig& m) {
  m.moe.experts = read_experts(c, {"num_experts", "num_local_experts"});
  m.moe.ffn = c.size("moe_intermediate_size");
  m.moe.shared_ffn = c.count_or("shared_expert_intermediate_size", 0);
  m.moe.shared_gate = m.moe.shared_ffn > 0;
  m.text.swiglu = c.text_or("hidden_act", "silu") == "silu";
  choose_sparse_layers(c, m);
  check_layer_experts(c, m);
}

// Decides which layers have full attention and which a gated delta net: by layer_types, or without it by
// full_attention_interval (with 4, layers 3, 7, 11, ... have attention).
void choose_gdn_layers(const ConfigFields& c, ModelConfig& m) {
  i64 layers = layer_count(c, "num_hidden_layers");
  set_layers(m, layers, {});
  if (!c.has("layer_types")) {
    i64 interval = c.size_or("full_attention_interval", 4);
    for (i64 n = 0; n < layers; n++)
      m.text.layers[n].mixer = (n + 1) % interval == 0 ? Mixer::kAttention : Mixer::kGdn;
    return;
  }
  std::vector<std::string> types = c.texts("layer_types");
  if (static_cast<i64>(types.size()) != layers)
    throw c.error("layer_types", "does not have one entry for each layer")
        .expected(layers)
        .found(types.size());
  for (std::size_t n = 0; n < types.size(); n++) {
    if (types[n] != "linear_attention" && types[n] != "full_attention")
      throw c.error("layer_types", "names a kind of layer that is not known")
          .expected("linear_attention or full_attention")
          .found(escaped(types[n]));
    m.text.layers[n].mixer = types[n] == "linear_attention" ? Mixer::kGdn : Mixer::kAttention;
  }
}

// The sizes of gated delta nets, with the defaults of transformers.
void read_gdn(const ConfigFields& c, GdnConfig& g) {
  g.key_heads = c.size_or("linear_num_key_heads", 16);
  g.value_heads = c.size_or("linear_num_value_heads", 32);
  g.key_dim = c.size_or("linear_key_head_dim", 128);
  g.value_dim = c.size_or("linear_value_head_dim", 128);
  g.conv_kernel = c.size_or("linear_conv_kernel_dim", 4);
  must_divide(c, "linear_num_value_heads", g.value_heads, "linear_num_key_heads", g.key_heads);
}

// The part that qwen3_next and qwen3_5 share: GDN layers between attention layers with an output gate.
void read_gated_decoder(const ConfigFields& c, ModelConfig& m, const HeadDefaults& defaults) {
  read_text(c, m, defaults);
  refuse_flag(c, "attention_bias");
  refuse_flag(c, "mtp_use_dedicated_embeddings");
  m.text.qk_norm = m.text.output_gate = true;
  read_gdn(c, m.gdn);
  choose_gdn_layers(c, m);
}

// The part that qwen3_moe and qwen3_vl_moe share: attention with norms of q and k, and experts.
void read_sparse_decoder(const ConfigFields& c, ModelConfig& m, const HeadDefaults& defaults) {
  read_text(c, m, defaults);
  refuse_flag(c, "attention_bias");
  m.text.qk_norm = true;
  set_layers(m, layer_count(c, "num_hidden_layers"), {});
  read_qwen_experts(c, m);
  m.moe.shared_ffn = 0;  // these families have none, whatever the config says
  m.moe.shared_gate = false;
}

}  // namespace

void read_qwen2(const ConfigFields& c, ModelConfig& m) {
  read_dense_decoder(c, m, {.kv_groups = 32, .null_groups_are_heads = true});
  m.text.qkv_bias = true;
}

void read_qwen2_moe(const ConfigFields& c, ModelConfig& m) {
  read_text(c, m, {.kv_groups = 16});
  m.text.qkv_bias = c.flag_or("qkv_bias", true);
  set_layers(m, layer_count(c, "num_hidden_layers"), {});
  read_qwen_experts(c, m);
}

void read_qwen3(const ConfigFields& c, ModelConfig& m) {
  read_dense_decoder(c, m, {.kv_groups = 32, .head_dim = 128, .null_groups_are_heads = true});
  m.text.qk_norm = true;
  read_mtp(c, m, 1, {});
}

void read_qwen3_moe(const ConfigFields& c, ModelConfig& m) {
  read_sparse_decoder(c, m, {.kv_groups = 4});
  read_mtp(c, m, 1, {Mixer::kAttention, Ffn::kMoe});
}

void read_qwen3_next(const ConfigFields& c, ModelConfig& m) {
  read_gated_decoder(c, m, {.kv_groups = 2, .head_dim = 256});
  read_qwen_experts(c, m);
  read_mtp(c, m, 1, {Mixer::kAttention, Ffn::kMoe});
}

void read_qwen3_5_text(const ConfigFields& c, ModelConfig& m) {
  read_gated_decoder(c, m, {.kv_groups = 4, .head_dim = 256});
  read_dense_ffn(c, m);
  read_mtp(c, m, 1, {});
}

void read_qwen3_vl(const ConfigFields& top, ModelConfig& m) {
  ConfigFields c = top.object("text_config");
  read_text(c, m, {.kv_groups = 32, .head_dim = 128, .null_groups_are_heads = true});
  read_dense_ffn(c, m);
  m.text.qk_norm = true;
  m.text.qkv_bias = c.flag_or("attention_bias", false);
  set_layers(m, layer_count(c, "num_hidden_layers"), {});
  read_qwen_vision(top, m, true);
}

void read_qwen3_vl_moe(const ConfigFields& top, ModelConfig& m) {
  read_sparse_decoder(top.object("text_config"), m, {.kv_groups = 16});
  read_qwen_vision(top, m, true);
}

void read_qwen3_5(const ConfigFields& top, ModelConfig& m) {
  read_qwen3_5_text(top.object("text_config"), m);
  read_qwen_vision(top, m, false);
}

void read_qwen3_5_moe(const ConfigFields& top, ModelConfig& m) {
  read_qwen3_next(top.object("text_config"), m);
  read_qwen_vision(top, m, false);
}

}  // namespace mckpt::impl
