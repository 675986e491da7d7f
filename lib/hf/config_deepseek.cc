// The readers of DeepSeek V2, V3 and V3.2 and of the GLM models that took over their parts:
//
//   deepseek_v3 = latent attention + dense layers, then experts + prediction layers
//   deepseek_v2 = deepseek_v3 - bias of the router        glm4_moe_lite = deepseek_v3
//   deepseek_v32 = deepseek_v3 + an indexer in each layer glm_moe_dsa = deepseek_v3 + indexers in all or some
//   glm4_moe = the experts of deepseek_v3 behind grouped-query attention
#include "core/base/error.h"
#include "core/base/text.h"
#include "hf/config_fields.h"
#include "hf/config_parts.h"
#include "hf/config_readers.h"
#include "mappings/config.h"

namespace mckpt::impl {
namespace {

// The ranks and head sizes of latent attention (MLA). q_lora_rank is missing in models without a low-rank
// query.
void read_mla(const ConfigFields& c, MlaConfig& mla) {
  mla.q_lora = c.has("q_lora_rank") ? c.size("q_lora_rank") : 0;
  mla.kv_lora = c.size("kv_lora_rank");
  mla.nope = c.size("qk_nope_head_dim");
  mla.rope = c.size("qk_rope_head_dim");
  mla.v_dim = c.size("v_head_dim");
}

// Configs that transformers wrote may also have num_experts, which is then that of another model.
void read_deepseek_experts(const ConfigFields& c, ModelConfig& m) {
  read_moe(c, m, {"n_routed_experts", "num_local_experts"});
  m.moe.shared_ffn =
      checked_mul(c.count_or("n_shared_experts", 0), m.moe.ffn, "the width of the shared experts");
  m.moe.expert_bias = true;
}

// All but which layers are dense, and how many are for prediction.
void read_latent_decoder(const ConfigFields& c, ModelConfig& m, Mixer mixer) {
  m.vocab = c.size("vocab_size");
  m.text.hidden = c.size("hidden_size");
  m.text.heads = m.text.kv_groups = c.size("num_attention_heads");
  refuse_flag(c, "attention_bias");
  read_dense_ffn(c, m);
  read_mla(c, m.mla);
  m.text.head_dim = m.mla.nope + m.mla.rope;
  read_deepseek_experts(c, m);
  set_layers(m, layer_count(c, "num_hidden_layers"), {mixer, Ffn::kDense});
}

void read_sparse_attention(const ConfigFields& c, ModelConfig& m) {
  read_latent_decoder(c, m, Mixer::kIndexedAttention);
  refuse_flag(c, "mlp_bias");
  if (m.mla.q_lora == 0) throw c.unsupported("q_lora_rank", "is missing; the indexer reads low-rank queries");
  m.indexer = {c.size("index_n_heads"), c.size("index_head_dim")};
  choose_dense_layers(c, m, 3);
  check_layer_experts(c, m);
  read_mtp(c, m, 16, {Mixer::kIndexedAttention, Ffn::kMoe});
}

// "full" has an indexer, "shared" uses the choice of the layer before: by a list, by a pattern of F and S, or
// after the first layers in every few.
std::vector<std::string> indexer_types(const ConfigFields& c, i64 layers) {
  if (c.has("indexer_types")) return c.texts("indexer_types");
  std::vector<std::string> types;
  if (c.has("index_topk_pattern")) {
    for (char letter : c.text_or("index_topk_pattern", ""))
      types.push_back(letter == 'F' ? "full" : letter == 'S' ? "shared" : std::string(1, letter));
    return types;
  }
  i64 every = std::max<i64>(c.count_or("index_topk_freq", 1), 1),
      offset = c.count_or("index_skip_topk_offset", 2);
  for (i64 n = 0; n < layers; n++)
    types.push_back(std::max<i64>(n - offset + 1, 0) % every == 0 ? "full" : "shared");
  return types;
}

}  // namespace

void read_deepseek_v3(const ConfigFields& c, ModelConfig& m) {
  read_latent_decoder(c, m, Mixer::kLatentAttention);
  i64 first = c.count_or("first_k_dense_replace", 0), every = c.size_or("moe_layer_freq", 1);
  for (i64 n = first; n < std::ssize(m.text.layers); n++)
    if (n % every == 0) m.text.layers[n].ffn = Ffn::kMoe;
  check_layer_experts(c, m);
  read_mtp(c, m, 16, {Mixer::kLatentAttention, Ffn::kMoe});
}

void read_deepseek_v2(const ConfigFields& c, ModelConfig& m) {
  read_deepseek_v3(c, m);
  refuse_flag(c, "mlp_bias");
  m.moe.expert_bias = false;
}

void read_glm4_moe_lite(const ConfigFields& c, ModelConfig& m) {
  read_latent_decoder(c, m, Mixer::kLatentAttention);
  choose_dense_layers(c, m, 1);
  check_layer_experts(c, m);
  read_mtp(c, m, 16, {Mixer::kLatentAttention, Ffn::kMoe});
}

void read_deepseek_v32(const ConfigFields& c, ModelConfig& m) { read_sparse_attention(c, m); }

void read_glm_moe_dsa(const ConfigFields& c, ModelConfig& m) {
  read_sparse_attention(c, m);
  std::vector<std::string> types = indexer_types(c, std::ssize(m.text.layers));
  if (types.size() != m.text.layers.size())
    throw c.error("indexer_types", "does not have one entry for each layer")
        .expected(m.text.layers.size())
        .found(types.size());
  for (std::size_t n = 0; n < types.size(); n++) {
    if (types[n] != "full" && types[n] != "shared")
      throw c.error("indexer_types", "names a kind of layer that is not known")
          .expected("full or shared")
          .found(escaped(types[n]));
    if (types[n] == "shared") m.text.layers[n].mixer = Mixer::kLatentAttention;
  }
}

void read_glm4_moe(const ConfigFields& c, ModelConfig& m) {
  read_text(c, m, {.kv_groups = 8});
  read_dense_ffn(c, m);
  m.text.qkv_bias = c.flag_or("attention_bias", false);
  m.text.qk_norm = c.flag_or("use_qk_norm", false);
  read_deepseek_experts(c, m);
  set_layers(m, layer_count(c, "num_hidden_layers"), {});
  choose_dense_layers(c, m, 1);
  check_layer_experts(c, m);
  read_mtp(c, m, 16, {Mixer::kAttention, Ffn::kMoe});
}

}  // namespace mckpt::impl
