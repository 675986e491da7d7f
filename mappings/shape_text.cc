// Computes the shape that a row promises: dimensions separated by blanks, each a product of words and numbers
// over the numbers of the model.
//
//   "experts 2*expert_ffn hidden"   with 4 experts of width 8 and hidden size 16   ->   [4, 16, 16]
//
// A word for which the model has no number is an error and never a dimension of 0.
#include "mappings/shape_text.h"

#include "core/base/error.h"
#include "core/base/int.h"
#include "core/items/shape.h"
#include "mappings/config.h"

#include <charconv>
#include <vector>

namespace mckpt::impl {
namespace {

// A word of the tables and the number that it means.
struct Word {
  std::string_view text;
  i64 (*size)(const ModelConfig&, const TowerConfig&);
};

using M = const ModelConfig&;
using T = const TowerConfig&;

i64 query_rows(T t) { return t.heads * t.head_dim * (t.output_gate ? 2 : 1); }
i64 expert_hidden(M m, T t) { return m.moe.latent > 0 ? m.moe.latent : t.hidden; }
i64 group_width(M m, T t) {
  return m.compressed.out_groups > 0 ? t.heads * t.head_dim / m.compressed.out_groups : 0;
}
i64 merged(M m) { return m.vision_tower.hidden * m.vision.merge * m.vision.merge; }

// pre: the numbers of a config are below 2^28 (its reader sees to that), so none of these overflows.
constexpr Word kWords[] = {
    {"vocab", [](M m, T) { return m.vocab; }},
    {"hidden", [](M, T t) { return t.hidden; }},
    {"ffn", [](M, T t) { return t.ffn; }},
    {"heads", [](M, T t) { return t.heads; }},
    {"head_dim", [](M, T t) { return t.head_dim; }},
    {"q", [](M, T t) { return query_rows(t); }},
    {"attention", [](M, T t) { return t.heads * t.value_size(); }},
    {"kv", [](M, T t) { return t.kv_groups * t.head_dim; }},
    {"values", [](M, T t) { return t.kv_groups * t.value_size(); }},
    {"qkv", [](M, T t) { return query_rows(t) + t.kv_groups * (t.head_dim + t.value_size()); }},
    {"layers", [](M m, T) { return std::ssize(m.text.layers); }},
    {"layer_input", [](M m, T) { return m.layer_input; }},
    {"experts", [](M m, T) { return m.moe.experts; }},
    {"expert_ffn", [](M m, T) { return m.moe.ffn; }},
    {"expert_hidden", [](M m, T t) { return expert_hidden(m, t); }},
    {"second_ffn", [](M m, T) { return m.moe.second_ffn; }},
    {"shared_ffn", [](M m, T) { return m.moe.shared_ffn; }},
    {"q_lora", [](M m, T) { return m.mla.q_lora; }},
    {"kv_lora", [](M m, T) { return m.mla.kv_lora; }},
    {"kv_down", [](M m, T) { return m.mla.kv_lora + m.mla.rope; }},
    {"mla_q", [](M m, T t) { return t.heads * (m.mla.nope + m.mla.rope); }},
    {"mla_kv", [](M m, T t) { return t.heads * (m.mla.nope + m.mla.v_dim); }},
    {"mla_attention", [](M m, T t) { return t.heads * m.mla.v_dim; }},
    {"indexer_heads", [](M m, T) { return m.indexer.heads; }},
    {"indexer_dim", [](M m, T) { return m.indexer.head_dim; }},
    {"indexer_q", [](M m, T) { return m.indexer.heads * m.indexer.head_dim; }},
    {"far_rate", [](M m, T) { return m.compressed.far_rate; }},
    {"out_groups", [](M m, T) { return m.compressed.out_groups; }},
    {"out_lora", [](M m, T) { return m.compressed.out_lora; }},
    {"group_width", [](M m, T t) { return group_width(m, t); }},
    {"indexer_qk", [](M m, T) { return (m.indexer.heads + 1) * m.indexer.head_dim; }},
    {"streams", [](M m, T) { return m.compressed.streams; }},
    {"mixes", [](M m, T) { return m.compressed.streams * (m.compressed.streams + 2); }},
    {"mix_rank", [](M m, T) { return m.compressed.mix_rank; }},
    {"ngram_size", [](M m, T) { return m.ngrams.size; }},
    {"ngram_heads", [](M m, T) { return m.ngrams.heads; }},
    {"ngram_width", [](M m, T) { return m.ngrams.width; }},
    {"ngram_part", [](M m, T t) { return m.ngrams.parts > 0 ? ceil_div(t.ngram_rows, m.ngrams.parts) : 0; }},
    {"ngram_kernel", [](M m, T) { return m.ngrams.kernel; }},
    {"routed", [](M m, T) { return m.compressed.routed; }},
    {"gdn_heads", [](M m, T) { return m.gdn.value_heads; }},
    {"gdn_value_dim", [](M m, T) { return m.gdn.value_dim; }},
    {"gdn_v", [](M m, T) { return m.gdn.v(); }},
    {"gdn_qkv", [](M m, T) { return 2 * m.gdn.qk() + m.gdn.v(); }},
    {"gdn_qkvz", [](M m, T) { return 2 * (m.gdn.qk() + m.gdn.v()); }},
    {"gdn_kernel", [](M m, T) { return m.gdn.conv_kernel; }},
    {"mamba_heads", [](M m, T) { return m.mamba.heads; }},
    {"mamba_inner", [](M m, T) { return m.mamba.inner(); }},
    {"mamba_conv", [](M m, T) { return m.mamba.inner() + 2 * m.mamba.group_state(); }},
    {"mamba_in", [](M m, T) { return 2 * (m.mamba.inner() + m.mamba.group_state()) + m.mamba.heads; }},
    {"mamba_kernel", [](M m, T) { return m.mamba.conv_kernel; }},
    {"text_hidden", [](M m, T) { return m.text.hidden; }},
    {"channels", [](M m, T) { return m.vision.in_channels; }},
    {"patch", [](M m, T) { return m.vision.patch; }},
    {"temporal_patch", [](M m, T) { return m.vision.temporal_patch; }},
    {"positions", [](M m, T) { return m.vision.positions; }},
    {"rows", [](M m, T) { return m.vision.rows; }},
    {"columns", [](M m, T) { return m.vision.columns; }},
    {"merged", [](M m, T) { return merged(m); }},
    {"merge", [](M m, T) { return m.vision.merge; }},
    {"merged_text", [](M m, T) { return m.text.hidden * m.vision.merge * m.vision.merge; }},
    {"temporal_merge", [](M m, T) { return m.vision.temporal_merge; }},
    {"class_tokens", [](M m, T) { return m.vision.class_tokens; }},
    {"projector", [](M m, T) { return m.vision.projector; }},
    {"out_hidden", [](M m, T) { return m.vision.out_hidden; }},
    {"mel_bins", [](M m, T) { return m.audio.mel_bins; }},
    {"audio_channels", [](M m, T) { return m.audio.channels; }},
    {"audio_last_channels", [](M m, T) { return m.audio.last_channels; }},
    {"audio_bins", [](M m, T) { return m.audio.bins; }},
    {"audio_positions", [](M m, T) { return m.audio.positions; }},
    {"audio_out", [](M m, T) { return m.audio.out_hidden; }},
    {"audio_kernel", [](M m, T) { return m.audio.kernel; }},
    {"audio_projector", [](M m, T) { return m.audio.projector; }},
};

// Calls fn for each part of the text between separators.
template <typename Fn>
void split(std::string_view text, char separator, Fn&& fn) {
  while (true) {
    std::size_t end = std::min(text.find(separator), text.size());
    fn(text.substr(0, end));
    if (end == text.size()) return;
    text.remove_prefix(end + 1);
  }
}

const Word* find_word(std::string_view text) {
  for (const Word& w : kWords)
    if (w.text == text) return &w;
  return nullptr;
}

// A decimal number, or 0.
i64 number(std::string_view text) {
  i64 n = 0;
  auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), n);
  return ec == std::errc{} && end == text.data() + text.size() ? n : 0;
}

[[noreturn]] void unknown_word(std::string_view word, std::string_view text) {
  std::vector<std::string_view> words;
  for (const Word& w : kWords) words.push_back(w.text);
  Error e(Code::kBadMap,
          cat("the shape '", escaped(text), "' has the word '", escaped(word), "', which is not known"));
  if (std::string_view near = nearest(word, words); !near.empty()) e.help(cat("did you mean '", near, "'?"));
  throw e;
}

i64 factor(std::string_view word, std::string_view text, M model, T tower) {
  if (i64 n = number(word); n > 0) return n;
  const Word* w = find_word(word);
  if (!w) unknown_word(word, text);
  i64 n = w->size(model, tower);
  if (n <= 0)
    throw Error(Code::kModelNumbers, cat("the model's configuration gives no ", word))
        .expected("a positive number")
        .found(n);
  return n;
}

}  // namespace

Shape shape_of(std::string_view text, const ModelConfig& model, const TowerConfig& tower) {
  std::vector<i64> dims;
  if (text.empty()) return Shape(dims);  // one item
  split(text, ' ', [&](std::string_view dimension) {
    i64 size = 1;
    split(dimension, '*', [&](std::string_view word) {
      size = checked_mul(size, factor(word, text, model, tower), "a dimension");
    });
    dims.push_back(size);
  });
  return Shape(dims);
}

int shape_rank(std::string_view text) {
  int rank = 0;
  if (text.empty()) return 0;
  split(text, ' ', [&](std::string_view) { rank++; });
  return rank;
}

void check_shape_text(std::string_view text) {
  if (text.empty()) return;
  split(text, ' ', [&](std::string_view dimension) {
    split(dimension, '*', [&](std::string_view word) {
      if (number(word) <= 0 && !find_word(word)) unknown_word(word, text);
    });
  });
}

}  // namespace mckpt::impl
