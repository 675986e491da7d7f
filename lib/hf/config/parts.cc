// Readers of the entries that several families share. A config may spell an entry in several ways, as
// transformers and vendors changed names; spellings that contradict each other are refused and not chosen
// from.
#include "hf/config/parts.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "hf/config/fields.h"
#include "mappings/config.h"
#include "mappings/config_steps.h"

namespace mckpt::impl {
namespace {

// A default of transformers that is a fixed number fits one model of the family, and is nearly always wrong
// for another one, so a config without the entry is refused. So is null, which transformers does not
// take for it.
void refuse_fixed_default(const ConfigFields& c, std::string_view key, i64 number) {
  if (number == 0 || c.has(key)) return;
  if (c.is_null(key))
    throw c.error(key, "is null")
        .expected("a number")
        .note("transformers, too, refuses null in a config of this family")
        .help(cat("give '", c.key(key), "' in config.json the number that the weights have"));
  throw c.error(key, "is missing")
      .expected("a number")
      .note(cat("transformers takes ", number, " where the entry is missing, whatever the weights have"))
      .help(cat("add '", c.key(key), "' to config.json"));
}

// The number of heads, of groups of keys and values, and the size of a head. Without a fixed default there
// are as many groups as heads, and the size of a head follows from the hidden size: 4096 / 32 heads = 128.
void read_heads(const ConfigFields& c, const HeadDefaults& defaults, TowerConfig& t) {
  t.heads = c.size("num_attention_heads");
  if (!c.is_null("num_key_value_heads") || !defaults.null_groups_are_heads)
    refuse_fixed_default(c, "num_key_value_heads", defaults.kv_groups);
  t.kv_groups = c.size_or("num_key_value_heads", t.heads);
  must_divide(c, "num_attention_heads", t.heads, "num_key_value_heads", t.kv_groups);
  if (c.has_any({"head_dim", "attention_head_dim"})) {
    t.head_dim = c.size_of({"head_dim", "attention_head_dim"});
  } else {
    refuse_fixed_default(c, "head_dim", defaults.head_dim);
    must_divide(c, "hidden_size", t.hidden, "num_attention_heads", t.heads);
    t.head_dim = t.hidden / t.heads;
  }
}

}  // namespace

i64 layer_count(const ConfigFields& c, std::string_view key) {
  i64 n = c.size(key);
  if (n > kMostLayers) throw c.error(key, "is out of range").expected(cat("at most ", kMostLayers)).found(n);
  return n;
}

void refuse_flag(const ConfigFields& c, std::string_view key) {
  if (c.flag_or(key, false))
    throw c.unsupported(key, "is true; the Megatron model of this family has no such biases");
}

void must_divide(const ConfigFields& c, std::string_view whole, i64 n, std::string_view part, i64 by) {
  if (n % by != 0)
    throw c.error(part, cat("does not divide '", c.key(whole), "' (mismatch)"))
        .expected(cat("a divisor of ", n))
        .found(by);
}

void read_text(const ConfigFields& c, ModelConfig& m, const HeadDefaults& defaults) {
  m.vocab = c.size("vocab_size");
  m.text.hidden = c.size("hidden_size");
  read_heads(c, defaults, m.text);
}

bool is_silu(const ConfigFields& c) {
  const std::string activation = c.text_or("hidden_act", "silu");
  return activation == "silu" || activation == "swish";
}

void set_layers(ModelConfig& m, i64 count, LayerSpec spec) {
  m.text.layers.assign(static_cast<std::size_t>(count), spec);
}

// "Stated" means that the config gives a number, even 0: tensors of MTP layers beyond it are then errors.
void read_mtp(const ConfigFields& c, ModelConfig& m, i64 most, LayerSpec layer) {
  constexpr std::string_view kKeys[] = {"num_nextn_predict_layers", "mtp_num_hidden_layers",
                                        "num_mtp_layers"};
  m.mtp.stated = false;
  for (std::string_view key : kKeys) {
    if (!c.has(key)) continue;
    i64 n = c.count_or(key, 0);
    if (m.mtp.stated && n != m.mtp.depths)
      throw c.error(key, "contradicts the other number of MTP layers").expected(m.mtp.depths).found(n);
    if (n > most)
      throw c.unsupported(key, "is more than this family has").expected(cat("at most ", most)).found(n);
    m.mtp.depths = n;
    m.mtp.stated = true;
  }
  m.mtp.layers = {layer};
}

i64 read_experts(const ConfigFields& c, std::span<const std::string_view> keys) {
  i64 n = c.size_of(keys);
  if (n > kMostExperts)
    throw c.error(keys[0], "is out of range").expected(cat("at most ", kMostExperts)).found(n);
  return n;
}

void read_moe(const ConfigFields& c, ModelConfig& m, std::span<const std::string_view> keys) {
  m.moe.experts = read_experts(c, keys);
  m.moe.ffn = c.size("moe_intermediate_size");
}

void choose_dense_layers(const ConfigFields& c, ModelConfig& m, i64 dense) {
  i64 layers = std::ssize(m.text.layers), first = c.count_or("first_k_dense_replace", dense);
  for (i64 n = 0; n < layers; n++) m.text.layers[n].ffn = n < first ? Ffn::kDense : Ffn::kMoe;
  if (!c.has("mlp_layer_types")) return;
  std::vector<std::string> types = c.texts("mlp_layer_types");
  if (static_cast<i64>(types.size()) != layers)
    throw c.error("mlp_layer_types", "does not have one entry for each layer")
        .expected(layers)
        .found(types.size());
  for (i64 n = 0; n < layers; n++) {
    const std::string& type = types[static_cast<std::size_t>(n)];
    if (type != "dense" && type != "sparse")
      throw c.error("mlp_layer_types", "names a kind of layer that is not known")
          .expected("dense or sparse")
          .found(escaped(type));
    Ffn ffn = type == "dense" ? Ffn::kDense : Ffn::kMoe;
    if (c.has("first_k_dense_replace") && ffn != m.text.layers[n].ffn)
      throw c.error("mlp_layer_types", cat("contradicts '", c.key("first_k_dense_replace"), "' at layer ", n))
          .expected(n < first ? "dense" : "sparse")
          .found(type);
    m.text.layers[n].ffn = ffn;
  }
}

// A config of 5 kB can ask for 10^9 names; this keeps their number below kMostLayerExperts.
void check_layer_experts(const ConfigFields& c, const ModelConfig& m) {
  if (static_cast<i64>(m.text.layers.size()) * m.moe.experts > kMostLayerExperts)
    throw c.error("num_hidden_layers", "times the number of experts is out of range")
        .expected(cat("at most ", kMostLayerExperts));
}

}  // namespace mckpt::impl
