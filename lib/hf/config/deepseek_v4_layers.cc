// Which layers of DeepSeek-V4 have which attention, and which a table of experts:
//
//   "compress_ratios": [0, 128, 4, ..., 0]        0: a window alone; 4: with an indexer; 128: compressed keys
//   "layer_types" and "compress_rates"            the same, as transformers writes it
//   "num_hash_layers": 3, or "mlp_layer_types"    the first layers
//
// Layers with a table are ModelConfig::layer_sizes[0]. Layers for prediction, whose ratios follow in the
// list, have a window.
#include <algorithm>

#include "core/base/error.h"
#include "core/base/text.h"
#include "hf/config/fields.h"
#include "hf/config/named_parts.h"
#include "hf/config/parts.h"
#include "io/json/json.h"
#include "mappings/config.h"

namespace mckpt::impl {
namespace {

constexpr i32 kHashSizes = 1;
constexpr i64 kNear = 4, kMostDepths = 16;

// The rate of one word of layer_types.
i64 rate_of(const ConfigFields& c, std::string_view word) {
  if (word == "sliding_attention") return 0;
  const bool near = word == "compressed_sparse_attention";
  if (!near && word != "heavily_compressed_attention")
    throw c.error("layer_types", "names a kind of layer that is not known")
        .expected("sliding_attention, compressed_sparse_attention or heavily_compressed_attention")
        .found(escaped(word));
  const i64 otherwise = near ? kNear : 128;
  const i64 rate = c.has("compress_rates") ? c.object("compress_rates").size_or(word, otherwise) : otherwise;
  // Megatron tells the two kinds by their rates.
  if ((rate == kNear) != near)
    throw c.unsupported("compress_rates", cat("gives ", word, " a rate that says another kind of layer"))
        .expected(near ? cat(kNear) : cat("another number than ", kNear))
        .found(rate);
  return rate;
}

std::vector<i64> rates(const ConfigFields& c) {
  if (c.has("compress_ratios")) return c.numbers_or_none("compress_ratios");
  if (!c.has("layer_types"))
    throw c.error("compress_ratios", "is missing").expected("a number for each layer");
  std::vector<i64> out;
  for (const std::string& word : c.texts("layer_types")) out.push_back(rate_of(c, word));
  return out;
}

Mixer mixer_of(const ConfigFields& c, i64 rate, i64& far) {
  if (rate == 0 || rate == 1) return Mixer::kAttention;
  if (rate == kNear) return Mixer::kIndexedAttention;
  if (rate < 0 || rate > ConfigFields::kLargest || (far != 0 && far != rate))
    throw c.unsupported("compress_ratios", "has a second rate of layers without an indexer")
        .expected(far)
        .found(rate);
  far = rate;
  return Mixer::kSparseAttention;
}

i64 hash_layers(const ConfigFields& c, i64 layers) {
  if (c.has("num_hash_layers") || !c.has("mlp_layer_types"))
    return std::min(layers, c.count_or("num_hash_layers", 3));
  const std::vector<std::string> words = c.texts("mlp_layer_types");
  i64 first = 0;
  for (i64 n = 0; n < std::ssize(words); n++) {
    const std::string& word = words[static_cast<std::size_t>(n)];
    if (word != "hash_moe" && word != "moe")
      throw c.error("mlp_layer_types", "names a kind of layer that is not known")
          .expected("hash_moe or moe")
          .found(escaped(word));
    if (word == "hash_moe" && n != first++)
      throw c.unsupported("mlp_layer_types", "has a hash layer behind others; Megatron has them first");
  }
  return std::min(layers, first);
}

}  // namespace

void read_deepseek_v4_layers(const ConfigFields& c, ModelConfig& m, i64) {
  const i64 layers = layer_count(c, "num_hidden_layers");
  set_layers(m, layers, {Mixer::kAttention, Ffn::kMoe});
  read_mtp(c, m, kMostDepths, {Mixer::kAttention, Ffn::kMoe});
  const std::vector<i64> all = rates(c);
  if (std::ssize(all) != layers && std::ssize(all) < layers + m.mtp.depths)
    throw c.error("compress_ratios", "does not have one entry for each layer")
        .expected(layers)
        .found(all.size());
  const i64 hashed = hash_layers(c, layers);
  for (i64 n = 0; n < std::ssize(all); n++) {
    const i64 rate = all[static_cast<std::size_t>(n)];
    if (n >= layers) {
      if (rate > 1)
        throw c.unsupported("compress_ratios", "compresses keys in a layer for prediction").found(rate);
      continue;
    }
    LayerSpec& layer = m.text.layers[static_cast<std::size_t>(n)];
    layer.mixer = mixer_of(c, rate, m.compressed.far_rate);
    if (n < hashed) layer.sizes = kHashSizes;
  }
  must_divide(c, "num_attention_heads", checked_mul(m.text.heads, m.text.head_dim, "the width of the heads"),
              "o_groups", m.compressed.out_groups);
  if (hashed == 0) return;
  TowerConfig hash = m.text;
  hash.layers.clear();
  hash.hash_routing = true;
  m.layer_sizes = {std::move(hash)};
}

}  // namespace mckpt::impl
