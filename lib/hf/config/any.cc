// Reads the config of a model that no family describes, for a map file that is a family by itself: the
// numbers under the names that most families use. Nothing is taken for granted: every number that a row's
// shape needs is compared with the tensors later.
//
//   kinds of layers      n_routed_experts, num_experts or num_local_experts    experts in every layer, but not in
//   first_k_dense_replace, mlp_only_layers, decoder_sparse_step, moe_layer_freq   these
//   kv_lora_rank                                                               latent attention
#include "hf/config/any.h"

#include <algorithm>

#include "core/base/error.h"
#include "hf/config/fields.h"
#include "hf/config/parts.h"
#include "io/json/json.h"
#include "mappings/config.h"
#include "mappings/config_steps.h"

namespace mckpt::impl {
namespace {

// The number of experts under any of its names; 0 if there is none.
i64 number_of_experts(const ConfigFields& c) {
  for (std::string_view key : {"n_routed_experts", "num_experts", "num_local_experts", "moe_num_experts"})
    if (c.has(key)) return c.count_or(key, 0) > 0 ? read_experts(c, {&key, 1}) : 0;
  return 0;
}

void read_sparse(const ConfigFields& c, ModelConfig& m) {
  m.moe.ffn = c.has("moe_intermediate_size") ? c.size("moe_intermediate_size") : c.size("intermediate_size");
  m.moe.shared_ffn = c.count_or("shared_expert_intermediate_size", c.count_or("shared_intermediate_size", 0));
  if (i64 shared = c.count_or("n_shared_experts", c.count_or("num_shared_experts", 0));
      shared > 0 && m.moe.shared_ffn == 0)
    m.moe.shared_ffn = checked_mul(shared, m.moe.ffn, "the width of the shared experts");
  i64 first = c.count_or("first_k_dense_replace", 0), step = c.size_or("decoder_sparse_step", 1),
      every =
          c.find("moe_layer_freq") && c.find("moe_layer_freq")->is_integer() ? c.size("moe_layer_freq") : 1;
  std::vector<i64> dense = c.numbers_or_none("mlp_only_layers");
  for (i64 n = first; n < std::ssize(m.text.layers); n++)
    if (n % every == 0 && (n + 1) % step == 0 && std::ranges::find(dense, n) == dense.end())
      m.text.layers[n].ffn = Ffn::kMoe;
  check_layer_experts(c, m);
}

void read_latent(const ConfigFields& c, ModelConfig& m) {
  m.mla.q_lora = c.has("q_lora_rank") ? c.size("q_lora_rank") : 0;
  m.mla.kv_lora = c.size("kv_lora_rank");
  m.mla.nope = c.size("qk_nope_head_dim");
  m.mla.rope = c.size("qk_rope_head_dim");
  m.mla.v_dim = c.size("v_head_dim");
  for (LayerSpec& layer : m.text.layers) layer.mixer = Mixer::kLatentAttention;
}

}  // namespace

void read_any(const ConfigFields& top, ModelConfig& m) {
  ConfigFields c = top.has("text_config") ? top.object("text_config") : top;
  read_text(c, m, {});
  if (c.has("intermediate_size")) m.text.ffn = c.size("intermediate_size");
  m.text.swiglu = is_silu(c);
  set_layers(m, layer_count(c, "num_hidden_layers"), {});
  if (c.has("kv_lora_rank")) read_latent(c, m);
  m.moe.experts = number_of_experts(c);
  if (m.moe.experts > 0) read_sparse(c, m);
}

}  // namespace mckpt::impl
