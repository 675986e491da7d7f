// Which layers of Qwen4-Exp have which mixer, and which a table of n-grams:
//
//   "layer_types": ["linear_attention", "full_attention", ...]    full_attention: with an indexer; newer files
//                                                                  say indexed_ or qwen_sparse_attention
//   "ple_layer_ids": [1, 3]                                       layers 0 and 2
//
// Each head of each table has a prime number of rows, the next ones from ngram_vocab_size_base on; a table
// has the rows of its heads, filled up to a multiple. 4 heads, base 50, filled up to multiples of 4:
//
//   layer 0   53 + 59 + 61 + 67 = 240 rows
//   layer 2   71 + 73 + 79 + 83 = 306, so 308 rows
//
// A layer with a table has sizes of its own in ModelConfig::layer_sizes.
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

// Primes are looked for by division; the release has 16 heads in a table.
constexpr i64 kMostHeads = 4096;

bool is_prime(i64 n) {
  if (n < 4) return n > 1;
  if (n % 2 == 0) return false;
  for (i64 d = 3; d * d <= n; d += 2)
    if (n % d == 0) return false;
  return true;
}

i64 next_prime(i64 n) {
  for (n++; !is_prime(n);) n++;
  return n;
}

Mixer mixer_named(const ConfigFields& c, std::string_view word) {
  if (word == "linear_attention") return Mixer::kGdn;
  for (std::string_view known : {"full_attention", "indexed_attention", "qwen_sparse_attention"})
    if (word == known) return Mixer::kSparseAttention;
  throw c.error("layer_types", "names a kind of layer that is not known")
      .expected("linear_attention, full_attention, indexed_attention or qwen_sparse_attention")
      .found(escaped(word));
}

void read_mixers(const ConfigFields& c, ModelConfig& m) {
  const i64 layers = layer_count(c, "num_hidden_layers");
  set_layers(m, layers, {Mixer::kSparseAttention, Ffn::kMoe});
  if (!c.has("layer_types")) {
    const i64 interval = c.size_or("full_attention_interval", 4);
    for (i64 n = 0; n < layers; n++)
      if ((n + 1) % interval != 0) m.text.layers[static_cast<std::size_t>(n)].mixer = Mixer::kGdn;
    return;
  }
  const std::vector<std::string> types = c.texts("layer_types");
  if (std::ssize(types) != layers)
    throw c.error("layer_types", "does not have one entry for each layer")
        .expected(layers)
        .found(types.size());
  for (std::size_t n = 0; n < types.size(); n++) m.text.layers[n].mixer = mixer_named(c, types[n]);
}

// The layers with tables, counted from 1 and in order.
std::vector<i64> table_layers(const ConfigFields& c, const ModelConfig& m) {
  std::vector<i64> ids = c.numbers_or_none("ple_layer_ids");
  std::ranges::sort(ids);
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  const i64 layers = std::ssize(m.text.layers);
  for (i64 id : ids) {
    if (id < 1 || id > layers)
      throw c.error("ple_layer_ids", "names a layer that does not exist")
          .expected(cat("1 to ", layers))
          .found(id);
    if (m.text.layers[static_cast<std::size_t>(id - 1)].mixer != Mixer::kGdn)
      throw c.unsupported("ple_layer_ids", "names a layer that has no linear attention").found(id);
  }
  return ids;
}

}  // namespace

void read_qwen4_layers(const ConfigFields& c, ModelConfig& m, i64) {
  read_mixers(c, m);
  const std::vector<i64> ids = table_layers(c, m);
  if (ids.empty()) return;
  NGramConfig& g = m.ngrams;
  g.size = c.size_or("ngram_size", 3);
  if (g.size < 2) throw c.error("ngram_size", "is too small").expected("2 or more").found(g.size);
  g.heads = checked_mul(g.size - 1, c.size_or("heads_per_ngram", 8), "the heads of n-grams");
  const i64 all_heads = checked_mul(g.heads, std::ssize(ids), "the heads of n-grams");
  if (all_heads > kMostHeads)
    throw c.error("heads_per_ngram", "is out of range")
        .expected(cat("at most ", kMostHeads, " heads of n-grams in all layers"))
        .found(all_heads);
  const i64 width = c.size_or("ple_embed_dim", m.text.hidden);
  must_divide(c, "ple_embed_dim", width, "heads_per_ngram", g.heads);
  g.width = width / g.heads;
  g.parts = c.size_or("split_ngram_parts", 512);
  g.kernel = c.size_or("ple_conv_kernel_size", 4);
  const i64 multiple = c.size_or("make_ngram_vocab_size_divisible_by", 128);
  i64 prime = c.size_or("ngram_vocab_size_base", 20'000'000) - 1;
  for (i64 id : ids) {
    TowerConfig sizes = m.text;
    sizes.layers.clear();
    for (i64 head = 0; head < g.heads; head++) sizes.ngram_rows += prime = next_prime(prime);
    sizes.ngram_rows = round_up(sizes.ngram_rows, multiple, "the rows of a table of n-grams");
    const i64 part = ceil_div(sizes.ngram_rows, g.parts);
    if (part * (g.parts - 1) >= sizes.ngram_rows)
      throw c.error("split_ngram_parts", "leaves a part of a table without rows")
          .expected(cat("parts that divide ", sizes.ngram_rows, " rows"))
          .found(g.parts);
    m.layer_sizes.push_back(std::move(sizes));
    m.text.layers[static_cast<std::size_t>(id - 1)].sizes = static_cast<i32>(m.layer_sizes.size());
  }
}

}  // namespace mckpt::impl
