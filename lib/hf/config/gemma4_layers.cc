// The layers of Gemma 4: two kinds of attention layers with heads of two sizes, layers that share keys and
// values, a dense MLP in every layer, perhaps beside experts, and a part of a second embedding for every
// layer. A feature that Megatron's model of the family does not have, or that no run of it has shown, is
// refused by its entry.
#include <array>
#include <map>
#include <tuple>

#include "core/base/error.h"
#include "core/base/text.h"
#include "hf/config/fields.h"
#include "hf/config/named_parts.h"
#include "hf/config/parts.h"
#include "mappings/config.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kFull = "full_attention", kSliding = "sliding_attention";

// Which layers are of full attention: those that the config lists, or every sixth; the last one always is, as
// transformers has it.
std::vector<bool> full_layers(const ConfigFields& c, i64 layers) {
  std::vector<bool> full;
  if (!c.has("layer_types")) {
    for (i64 n = 0; n < layers; n++) full.push_back((n + 1) % 6 == 0);
  } else {
    for (const std::string& type : c.texts("layer_types")) {
      if (type != kFull && type != kSliding)
        throw c.error("layer_types", "names a kind of layer that is not known")
            .expected(cat(kFull, " or ", kSliding))
            .found(escaped(type));
      full.push_back(type == kFull);
    }
    if (std::ssize(full) != layers)
      throw c.error("layer_types", "does not have one entry for each layer")
          .expected(layers)
          .found(full.size());
  }
  full.back() = true;
  return full;
}

// The layers from this one on use keys and values of earlier ones. Megatron's layer takes the keys and values
// of the last layer of its own kind before it, so both kinds that occur there must occur before.
i64 first_shared(const ConfigFields& c, const std::vector<bool>& full) {
  i64 layers = std::ssize(full), shared = c.count_or("num_kv_shared_layers", 0), first = layers - shared;
  if (shared == 0) return layers;
  std::array<bool, 2> before{}, behind{};
  for (i64 n = 0; n < layers; n++) (n < first ? before : behind)[full[n]] = true;
  if (first < 1 || (behind[0] && !before[0]) || (behind[1] && !before[1]))
    throw c
        .error("num_kv_shared_layers", "leaves no layer of the same kind whose keys and values can be shared")
        .expected(cat("less than ", layers))
        .found(shared);
  return first;
}

// The groups of keys and values of a full layer. transformers reads the entry with attention_k_eq_v only;
// Megatron's model of the family reads it always.
i64 global_groups(const ConfigFields& c, const TowerConfig& text, bool keys_are_values) {
  constexpr std::string_view kKey = "num_global_key_value_heads";
  i64 groups = c.size_or(kKey, text.kv_groups);
  must_divide(c, "num_attention_heads", text.heads, kKey, groups);
  if (!keys_are_values && groups != text.kv_groups)
    throw c.unsupported(kKey, "is not num_key_value_heads, but attention_k_eq_v is false")
        .expected(text.kv_groups)
        .found(groups)
        .note("transformers has num_key_value_heads in all layers then, Megatron's model has not");
  return groups;
}

// The heads of a full layer. Files of the hub give them once; transformers 5 writes them for each layer that
// differs from the rest: "per_layer_config": {"5": {"head_dim": 512, "num_key_value_heads": 2}}.
void read_full_heads(const ConfigFields& c, i64 layer, bool keys_are_values, TowerConfig& t) {
  constexpr std::string_view kByLayer = "per_layer_config";
  if (!c.has(kByLayer)) {
    t.head_dim = c.size_or("global_head_dim", 512);
    t.kv_groups = global_groups(c, t, keys_are_values);
    return;
  }
  ConfigFields all = c.object(kByLayer);
  if (!all.has(cat(layer))) return;
  ConfigFields own = all.object(cat(layer));
  t.head_dim = own.size_or("head_dim", t.head_dim);
  i64 groups = own.size_or("num_key_value_heads", t.kv_groups);
  must_divide(c, "num_attention_heads", t.heads, kByLayer, groups);
  t.kv_groups = groups;
}

// How wide each layer's own embedding is; transformers takes 256 where the entry is absent.
constexpr std::string_view kLayerInput = "hidden_size_per_layer_input";
i64 layer_input(const ConfigFields& c) { return c.count_unless_null(kLayerInput, 256); }

// Every layer has a dense MLP, which is Megatron's shared expert.
void read_experts_beside_mlp(const ConfigFields& c, ModelConfig& m) {
  constexpr std::string_view kKeys[] = {"num_experts"};
  read_moe(c, m, kKeys);
  m.moe.shared_ffn = m.text.ffn;
  constexpr std::string_view kShared = "num_kv_shared_layers";
  const i64 input = layer_input(c);
  if (const i64 shared = c.count_or(kShared, 0); shared > 0 || input > 0)
    throw c
        .unsupported(shared > 0 ? kShared : kLayerInput,
                     "is not 0 in a model with experts, of which no released one has it")
        .found(shared > 0 ? shared : input);
}

// Megatron's dense model makes its vocabulary a multiple of 128 rows, and on one rank does not load what it
// adds.
void read_gemma4_dense(const ConfigFields& c, ModelConfig& m) {
  m.layer_input = layer_input(c);
  m.no_context_parallel = m.own_modules = true;
  if (m.vocab % 128 != 0)
    throw c.unsupported("vocab_size", "is not a multiple of 128, which Megatron's dense model makes of it")
        .expected("a multiple of 128")
        .found(m.vocab);
  i64 rows = c.size_or("vocab_size_per_layer_input", 262'144);
  if (m.layer_input > 0 && rows != m.vocab)
    throw c.unsupported("vocab_size_per_layer_input", "is not the size of the vocabulary")
        .expected(m.vocab)
        .found(rows);
}

}  // namespace

void read_gemma4_experts(const ConfigFields& c, ModelConfig& m, i64) {
  c.flag_or("enable_moe_block", false) ? read_experts_beside_mlp(c, m) : read_gemma4_dense(c, m);
}

// Layers that are alike share their sizes.
void read_gemma4_layers(const ConfigFields& c, ModelConfig& m, i64) {
  i64 layers = layer_count(c, "num_hidden_layers");
  std::vector<bool> full = full_layers(c, layers);
  i64 shared = first_shared(c, full);
  bool keys_are_values = c.flag_or("attention_k_eq_v", false), wide = c.flag_or("use_double_wide_mlp", false);
  std::map<std::tuple<KeyValues, i64, i64>, i32> known{
      {{m.text.key_values, m.text.head_dim, m.text.kv_groups}, 0}};
  for (i64 n = 0; n < layers; n++) {
    TowerConfig t = m.text;
    t.layers.clear();
    if (full[n]) read_full_heads(c, n, keys_are_values, t);
    if (full[n] && keys_are_values) t.key_values = KeyValues::kOneTensor;
    if (n >= shared) {
      t.key_values = KeyValues::kOfEarlierLayer;
      t.ffn *= wide ? 2 : 1;
    }
    auto [at, first] =
        known.try_emplace({t.key_values, t.head_dim, t.kv_groups}, std::ssize(m.layer_sizes) + 1);
    if (first) m.layer_sizes.push_back(std::move(t));
    m.text.layers.push_back({Mixer::kAttention, m.moe.experts > 0 ? Ffn::kMoe : Ffn::kDense, at->second,
                             full[n] ? AttentionKind::kGlobal : AttentionKind::kSliding});
  }
}

}  // namespace mckpt::impl
