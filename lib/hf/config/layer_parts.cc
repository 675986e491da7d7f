// Which layers of a model have which mixer and feed-forward part, and numbers that follow from several
// entries.
#include <algorithm>
#include <array>

#include "core/base/error.h"
#include "core/base/text.h"
#include "hf/config/fields.h"
#include "hf/config/named_parts.h"
#include "hf/config/parts.h"
#include "io/json/json.h"
#include "mappings/config.h"

namespace mckpt::impl {
namespace {

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

// One of two words for each layer; all are the first word if the entry is absent.
std::vector<bool> layers_with(const ConfigFields& c, std::string_view key, i64 layers,
                              std::string_view without, std::string_view with) {
  std::vector<std::string> words = c.texts(key);
  if (std::ssize(words) != layers)
    throw c.error(key, "does not have one entry for each layer").expected(layers).found(words.size());
  std::vector<bool> out;
  for (const std::string& word : words) {
    if (word != without && word != with)
      throw c.error(key, "names a kind of layer that is not known")
          .expected(cat(without, " or ", with))
          .found(escaped(word));
    out.push_back(word == with);
  }
  return out;
}

// The older spelling of the same: 0 or 1 for each layer.
std::vector<bool> flagged_layers(const ConfigFields& c, std::string_view key, i64 layers) {
  std::vector<i64> flags = c.numbers_or_none(key);
  if (std::ssize(flags) != layers)
    throw c.error(key, "does not have one entry for each layer").expected(layers).found(flags.size());
  std::vector<bool> out;
  for (i64 flag : flags) out.push_back(flag != 0);
  return out;
}

// A number for both pools of experts, or a list of one for each.
std::array<i64, 2> of_pools(const ConfigFields& c, std::string_view key, std::array<i64, 2> otherwise) {
  const JsonValue* value = c.find(key);
  if (!value) return otherwise;
  if (!value->is(JsonType::kArray)) return {c.size(key), c.size(key)};
  std::vector<i64> numbers = c.numbers_or_none(key);
  if (numbers.size() != 2 || numbers[0] <= 0 || numbers[1] <= 0 ||
      std::max(numbers[0], numbers[1]) > ConfigFields::kLargest)
    throw c.error(key, "does not have a number for each pool of experts").expected("two positive numbers");
  return {numbers[0], numbers[1]};
}

// The first and the last layer with experts, as older configs have them, for each pool. Megatron's layer
// has both pools or neither.
std::vector<bool> interval_of_pools(const ConfigFields& c, i64 layers) {
  const std::array<i64, 2> first = of_pools(c, "moe_layer_start_index", {1, 1}),
                           last = of_pools(c, "moe_layer_end_index", {layers - 1, layers - 1});
  const i64 every = c.size_or("moe_layer_interval", 1);
  if (first[0] != first[1] || std::min(last[0], layers - 1) != std::min(last[1], layers - 1))
    throw c.unsupported("moe_layer_end_index", "gives the pools of experts different layers");
  std::vector<bool> sparse(static_cast<std::size_t>(layers));
  for (i64 n = first[0]; n <= std::min(last[0], layers - 1); n++)
    sparse[static_cast<std::size_t>(n)] = (n + 1) % every == 0;
  return sparse;
}

}  // namespace

void read_shared_gate(const ConfigFields&, ModelConfig& m, i64) { m.moe.shared_gate = m.moe.shared_ffn > 0; }

// The entries about layers without experts are of another class, and mean nothing.
void read_experts_everywhere(const ConfigFields&, ModelConfig& m, i64) {
  for (LayerSpec& layer : m.text.layers) layer.ffn = Ffn::kMoe;
}

// Decides which layers have experts. Layer n has experts unless mlp_only_layers names it or
// decoder_sparse_step skips it: with a step of 2, layers 1, 3, 5, ... have experts.
void read_sparse_layers(const ConfigFields& c, ModelConfig& m, i64) {
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

// Decides which layers have full attention and which a gated delta net: by layer_types, or without it by
// full_attention_interval (with 4, layers 3, 7, 11, ... have attention).
void read_gdn_layers(const ConfigFields& c, ModelConfig& m, i64) {
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

void read_latent_head_dim(const ConfigFields&, ModelConfig& m, i64) {
  m.text.head_dim = m.mla.nope + m.mla.rope;
}

void read_head_dim_of_hidden(const ConfigFields& c, ModelConfig& m, i64) {
  must_divide(c, "hidden_size", m.text.hidden, "num_attention_heads", m.text.heads);
  m.text.head_dim = m.text.hidden / m.text.heads;
}

void read_every_few_experts(const ConfigFields& c, ModelConfig& m, i64 dense) {
  i64 first = c.count_or("first_k_dense_replace", dense), every = c.size_or("moe_layer_freq", 1);
  for (i64 n = first; n < std::ssize(m.text.layers); n++)
    if (n % every == 0) m.text.layers[n].ffn = Ffn::kMoe;
}

void read_low_rank_queries(const ConfigFields& c, ModelConfig& m, i64) {
  if (m.mla.q_lora == 0) throw c.unsupported("q_lora_rank", "is missing; the indexer reads low-rank queries");
}

void read_indexer_types(const ConfigFields& c, ModelConfig& m, i64) {
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

void read_as_many_groups(const ConfigFields& c, ModelConfig& m, i64) {
  if (m.text.kv_groups != m.text.heads)
    throw c
        .unsupported(
            "num_key_value_heads",
            "is not the number of query heads; Megatron's model of this family norms as many keys as queries")
        .expected(m.text.heads)
        .found(m.text.kv_groups);
}

// Layer n has experts if it is in the range and the interval divides n + 1. An end of -1 is the last layer.
void read_interval_layers(const ConfigFields& c, ModelConfig& m, i64) {
  i64 layers = layer_count(c, "num_hidden_layers"), every = c.size_or("moe_layer_interval", 1);
  i64 begin = c.count_or("moe_layer_start_index", 1);
  bool to_end = c.real_or("moe_layer_end_index", -1) < 0;
  i64 end = to_end ? layers - 1 : c.count_or("moe_layer_end_index", 0);
  set_layers(m, layers, {});
  for (i64 n = begin; n <= std::min(end, layers - 1); n++)
    if ((n + 1) % every == 0) m.text.layers[n].ffn = Ffn::kMoe;
}

void read_first_dense_layers(const ConfigFields& c, ModelConfig& m, i64) {
  const i64 layers = std::ssize(m.text.layers);
  for (i64 n = 0; n < std::min(layers, c.count_or("first_k_dense_replace", 0)); n++)
    m.text.layers[n].ffn = Ffn::kDense;
}

// The size of a Mamba head is a number, or "auto": what the heads share.
void read_mamba_head_dim(const ConfigFields& c, ModelConfig& m, i64) {
  MambaConfig& mamba = m.mamba;
  i64 inner = c.has("mamba_d_ssm")
                  ? c.size("mamba_d_ssm")
                  : checked_mul(c.size_or("mamba_expand", 2), m.text.hidden, "the width of the Mamba mixers");
  must_divide(c, "mamba_d_ssm", inner, "mamba_n_heads", mamba.heads);
  mamba.head_dim = inner / mamba.heads;
  if (const JsonValue* dim = c.find("mamba_d_head");
      dim && dim->is_integer() && c.size("mamba_d_head") != mamba.head_dim)
    throw c.error("mamba_d_head", "is not what each head has of 'mamba_d_ssm'")
        .expected(mamba.head_dim)
        .found(c.size("mamba_d_head"));
}

// Layers with experts by a list, or every few: with a step of 2, layers 1, 3, 5, ...
void read_llama4_layers(const ConfigFields& c, ModelConfig& m, i64) {
  const i64 layers = std::ssize(m.text.layers);
  if (c.has("moe_layers")) {
    for (i64 n : c.numbers_or_none("moe_layers")) {
      if (n < 0 || n >= layers)
        throw c.error("moe_layers", "names a layer that does not exist")
            .expected(cat("0 to ", layers - 1))
            .found(n);
      m.text.layers[static_cast<std::size_t>(n)].ffn = Ffn::kMoe;
    }
    return;
  }
  const i64 step = c.size_or("interleave_moe_layer_step", 1);
  for (i64 n = step - 1; n < layers; n += step) m.text.layers[static_cast<std::size_t>(n)].ffn = Ffn::kMoe;
}

// Two pools of equally many experts, of two widths. Without a list of layers, all but the first have them.
void read_ernie_pools(const ConfigFields& c, ModelConfig& m, i64) {
  const std::array<i64, 2> experts = of_pools(c, "moe_num_experts", {64, 64}),
                           widths = of_pools(c, "moe_intermediate_size", {1536, 512});
  if (experts[0] != experts[1])
    throw c.unsupported("moe_num_experts", "is not the same number for both pools")
        .expected(experts[0])
        .found(experts[1]);
  if (experts[0] > kMostExperts)
    throw c.error("moe_num_experts", "is out of range")
        .expected(cat("at most ", kMostExperts))
        .found(experts[0]);
  m.moe.experts = experts[0];
  m.moe.ffn = widths[0];
  m.moe.second_ffn = widths[1];
  m.moe.shared_ffn =
      checked_mul(c.count_or("moe_num_shared_experts", 2), m.moe.ffn, "the width of the shared experts");
  const i64 layers = layer_count(c, "num_hidden_layers");
  set_layers(m, layers, {});
  std::vector<bool> sparse(static_cast<std::size_t>(layers), true);
  sparse[0] = false;
  if (c.has("mlp_layer_types"))
    sparse = layers_with(c, "mlp_layer_types", layers, "dense", "sparse");
  else if (c.has("moe_layer_start_index"))
    sparse = interval_of_pools(c, layers);
  for (i64 n = 0; n < layers; n++)
    if (sparse[static_cast<std::size_t>(n)]) m.text.layers[n].ffn = Ffn::kMoe;
}

// Which layers have experts and which sparse attention, and the sizes of its indexer, in either spelling.
void read_minimax_layers(const ConfigFields& c, ModelConfig& m, i64) {
  const i64 layers = std::ssize(m.text.layers);
  std::vector<bool> moe(static_cast<std::size_t>(layers), true), sparse(static_cast<std::size_t>(layers));
  if (c.has("mlp_layer_types"))
    moe = layers_with(c, "mlp_layer_types", layers, "dense", "sparse");
  else if (c.has("moe_layer_freq"))
    moe = flagged_layers(c, "moe_layer_freq", layers);
  ConfigFields old = c.has("sparse_attention_config") ? c.object("sparse_attention_config") : c;
  if (c.has("layer_types"))
    sparse = layers_with(c, "layer_types", layers, "full_attention", "minimax_m3_sparse");
  else if (old.has("sparse_attention_freq"))
    sparse = flagged_layers(old, "sparse_attention_freq", layers);
  for (i64 n = 0; n < layers; n++)
    m.text.layers[n] = {sparse[n] ? Mixer::kSparseAttention : Mixer::kAttention,
                        moe[n] ? Ffn::kMoe : Ffn::kDense};
  m.indexer.heads =
      c.has("index_n_heads") ? c.size("index_n_heads") : old.size_or("sparse_num_index_heads", 4);
  m.indexer.head_dim =
      c.has("index_head_dim") ? c.size("index_head_dim") : old.size_or("sparse_index_dim", 128);
}

}  // namespace mckpt::impl
