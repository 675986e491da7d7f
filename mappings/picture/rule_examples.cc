// The example of each rule that the pictures show: a tensor small enough to draw, cut over a few cells.
// `parts` names ranges of the sources, by which items are marked and coloured; a test demands an example for
// every rule.
#include "mappings/config.h"

#include "mappings/picture/examples.h"
#include "mappings/picture/picture.h"

namespace mckpt::impl {
namespace {

ModelConfig attention(bool gate, i64 groups) {
  ModelConfig m;
  m.text.hidden = 2;
  m.text.heads = 4;
  m.text.kv_groups = groups;
  m.text.head_dim = 2;
  m.text.output_gate = gate;
  return m;
}

ModelConfig attention_with_gates() {
  ModelConfig m = attention(false, 2);
  m.text.head_gates = true;
  return m;
}

ModelConfig attention_with_values(i64 value_dim) {
  ModelConfig m = attention(false, 2);
  m.text.value_dim = value_dim;
  return m;
}

ModelConfig experts(i64 width, i64 hidden) {
  ModelConfig m;
  m.text.hidden = hidden;
  m.moe.experts = 2;
  m.moe.ffn = width;
  return m;
}

ModelConfig latent_attention() {
  ModelConfig m;
  m.text.hidden = 2;
  m.mla.q_lora = 3;
  m.mla.kv_lora = 2;
  m.mla.rope = 1;
  return m;
}

ModelConfig vocabulary() {
  ModelConfig m;
  m.vocab = 5;
  return m;
}

std::vector<RuleExample> plain() {
  return {
      {.name = "column",
       .rule = "column",
       .caption = "rows in equal parts",
       .sources = {{{4, 3}}},
       .parts = {{"weight", rows(0, 3, 0, 4)}}},
      {.name = "column_transposed",
       .rule = "column_transposed",
       .caption = "stored [in, out]: columns in equal parts, transposed",
       .sources = {{{3, 4}}},
       .parts = {{"weight", rows(0, 4, 0, 3)}}},
      {.name = "column_swapped",
       .rule = "column_swapped",
       .caption = "rows in equal parts, the halves of each exchanged",
       .sources = {{{4, 4}}},
       .parts = {{"first half", {0, 0, 2, {4, 4}, {}}}, {"second half", {0, 2, 2, {4, 4}, {}}}}},
      {.name = "column_by_group",
       .rule = "column_by_group",
       .caption = "2 groups of 2 items over 4 cells",
       .model = attention(false, 2),
       .sources = {{{4}}},
       .parts = {{"weight", rows(0, 1, 0, 4)}},
       .cells = 4},
      {.name = "column_joined",
       .rule = "column_joined",
       .caption = "3, 3 and 2 rows, joined and cut in equal parts",
       .sources = {{{3, 2}}, {{3, 2}}, {{2, 2}}},
       .parts = {{"first part", rows(0, 2, 0, 3)},
                 {"second part", rows(1, 2, 0, 3)},
                 {"third part", rows(2, 2, 0, 2)}}},
      {.name = "row",
       .rule = "row",
       .caption = "columns in equal parts",
       .sources = {{{3, 4}}},
       .parts = {{"weight", rows(0, 4, 0, 3)}}},
      {.name = "replicate",
       .rule = "replicate",
       .caption = "every cell has the whole tensor",
       .sources = {{{4}}},
       .parts = {{"weight", rows(0, 1, 0, 4)}}},
      {.name = "replicate_row",
       .rule = "replicate_row",
       .caption = "every cell has the only row, as a vector",
       .sources = {{{1, 4}}},
       .parts = {{"weight", rows(0, 4, 0, 1)}}},
      {.name = "replicate_slice",
       .rule = "replicate_slice",
       .caption = "every cell has one row, as a vector; two parameters",
       .sources = {{{2, 4}}},
       .parts = {{"weight", rows(0, 4, 0, 2)}},
       .experts = 2},
      {.name = "replicate_transposed",
       .rule = "replicate_transposed",
       .caption = "every cell has the whole matrix, transposed",
       .sources = {{{2, 3}}},
       .parts = {{"weight", rows(0, 3, 0, 2)}}},
      {.name = "zero_centered_norm",
       .rule = "zero_centered_norm",
       .caption = "every cell has the whole tensor, less one",
       .sources = {{{4}}},
       .parts = {{"weight", rows(0, 1, 0, 4)}}},
      {.name = "vocab",
       .rule = "vocab",
       .caption = "5 rows padded to 8 over 4 cells",
       .model = vocabulary(),
       .sources = {{{5, 2}}},
       .parts = {{"weight", rows(0, 2, 0, 5)}},
       .cells = 4,
       .padded_vocab = 8},
      {.name = "gated_mlp",
       .rule = "gated_mlp",
       .caption = "a gated MLP of width 4",
       .sources = {{{4, 2}}, {{4, 2}}},
       .parts = {{"gate", rows(0, 2, 0, 4)}, {"up", rows(1, 2, 0, 4)}},
       .split = KeySplit::kSwiglu},
      {.name = "gated_mlp_joined",
       .rule = "gated_mlp_joined",
       .caption = "a gated MLP of width 4, stored as one tensor",
       .sources = {{{8, 2}}},
       .parts = {{"gate", rows(0, 2, 0, 4)}, {"up", rows(0, 2, 4, 4)}},
       .split = KeySplit::kSwiglu},
  };
}

std::vector<RuleExample> attentions() {
  return {
      {.name = "qkv",
       .rule = "qkv",
       .caption = "4 query heads in 2 groups, heads of 2 rows",
       .model = attention(false, 2),
       .sources = {{{8, 2}}, {{4, 2}}, {{4, 2}}},
       .parts = {{"query", rows(0, 2, 0, 8)}, {"key", rows(1, 2, 0, 4)}, {"value", rows(2, 2, 0, 4)}}},
      {.name = "qkv_output_gate",
       .rule = "qkv",
       .caption = "4 query heads in 2 groups, an output gate beside every query head",
       .model = attention(true, 2),
       .sources = {{{16, 2}}, {{4, 2}}, {{4, 2}}},
       .parts = {{"query", rows(0, 2, 0, 2, 4, 4)},
                 {"gate", rows(0, 2, 2, 2, 4, 4)},
                 {"key", rows(1, 2, 0, 4)},
                 {"value", rows(2, 2, 0, 4)}}},
      {.name = "qkv_few_groups",
       .rule = "qkv",
       .caption = "one group over 4 cells: cut by rows, nothing is stored twice",
       .model = attention(false, 1),
       .sources = {{{8, 2}}, {{2, 2}}, {{2, 2}}},
       .parts = {{"query", rows(0, 2, 0, 8)}, {"key", rows(1, 2, 0, 2)}, {"value", rows(2, 2, 0, 2)}},
       .cells = 4},
      {.name = "qkv_small_values",
       .rule = "qkv",
       .caption = "4 query heads in 2 groups, heads of 2 rows, but values of one row",
       .model = attention_with_values(1),
       .sources = {{{8, 2}}, {{4, 2}}, {{2, 2}}},
       .parts = {{"query", rows(0, 2, 0, 8)}, {"key", rows(1, 2, 0, 4)}, {"value", rows(2, 2, 0, 2)}}},
      {.name = "qkv_head_gates",
       .rule = "qkv_head_gates",
       .caption =
           "4 query heads in 2 groups; the one row of a head's gate is there for both rows of the head",
       .model = attention_with_gates(),
       .sources = {{{8, 2}}, {{4, 2}}, {{4, 2}}, {{4, 2}}},
       .parts = {{"query", rows(0, 2, 0, 8)},
                 {"gate", rows(3, 2, 0, 4)},
                 {"key", rows(1, 2, 0, 4)},
                 {"value", rows(2, 2, 0, 4)}}},
      {.name = "qkv_gates_by_head",
       .rule = "qkv_gates_by_head",
       .caption = "4 query heads in 2 groups, an output gate beside every query head",
       .model = attention(true, 2),
       .sources = {{{16, 2}}, {{4, 2}}, {{4, 2}}},
       .parts = {{"query", rows(0, 2, 0, 2, 4, 4)},
                 {"gate", rows(0, 2, 2, 2, 4, 4)},
                 {"key", rows(1, 2, 0, 4)},
                 {"value", rows(2, 2, 0, 4)}}},
      {.name = "qkv_joined",
       .rule = "qkv_joined",
       .caption = "4 heads in 4 groups from one tensor",
       .model = attention(false, 4),
       .sources = {{{24, 2}}},
       .parts = {{"query", rows(0, 2, 0, 8)}, {"key", rows(0, 2, 8, 8)}, {"value", rows(0, 2, 16, 8)}}},
      {.name = "qkv_keys_as_values",
       .rule = "qkv_keys_as_values",
       .caption = "4 query heads in 2 groups; the keys are the values too",
       .model = attention(false, 2),
       .sources = {{{8, 2}}, {{4, 2}}},
       .parts = {{"query", rows(0, 2, 0, 8)}, {"key", rows(1, 2, 0, 4)}}},
      {.name = "qkv_queries_only",
       .rule = "qkv_queries_only",
       .caption = "4 query heads in 2 groups, with zeros for keys and values",
       .model = attention(false, 2),
       .sources = {{{8, 2}}},
       .parts = {{"query", rows(0, 2, 0, 8)}}},
      {.name = "head_norm_of_ones",
       .rule = "head_norm_of_ones",
       .caption = "zeros plus one, as many as a head of 2 has; no tensor is read",
       .model = attention(false, 2),
       .sources = {},
       .parts = {}},
      {.name = "mla_down",
       .rule = "mla_down",
       .caption = "query rank 3, key-value rank 2 and 1 rotary row",
       .model = latent_attention(),
       .sources = {{{3, 2}}, {{3, 2}}},
       .parts = {{"q_a", rows(0, 2, 0, 3)}, {"kv_a", rows(1, 2, 0, 3)}},
       .split = KeySplit::kMlaDown},
  };
}

std::vector<RuleExample> gated_experts() {
  const std::vector<SourcePart> halves = {{"gate", rows(0, 3, 0, 4, 8, 2)}, {"up", rows(0, 3, 4, 4, 8, 2)}};
  const std::vector<SourcePart> even_odd = {{"gate", rows(0, 3, 0, 1, 2, 8)}, {"up", rows(0, 3, 1, 1, 2, 8)}};
  return {
      {.name = "gated_expert",
       .rule = "gated_expert",
       .caption = "2 experts of width 4, stored [E, 2I, H]",
       .model = experts(4, 3),
       .sources = {{{2, 8, 3}}},
       .parts = halves,
       .experts = 2,
       .split = KeySplit::kSwiglu},
      {.name = "gated_expert_transposed",
       .rule = "gated_expert_transposed",
       .caption = "2 experts of width 4, stored [E, H, 2I]",
       .model = experts(4, 3),
       .sources = {{{2, 3, 8}}},
       .parts = {{"gate", rows(0, 1, 0, 4, 8, 6)}, {"up", rows(0, 1, 4, 4, 8, 6)}},
       .experts = 2,
       .split = KeySplit::kSwiglu},
      {.name = "gated_expert_interleaved",
       .rule = "gated_expert_interleaved",
       .caption = "2 experts of width 4, stored [E, H, 2I], gate and up in turn",
       .model = experts(4, 3),
       .sources = {{{2, 3, 8}}},
       .parts = {{"gate", rows(0, 1, 0, 1, 2, 24)}, {"up", rows(0, 1, 1, 1, 2, 24)}},
       .experts = 2},
      {.name = "gated_expert_interleaved_rows",
       .rule = "gated_expert_interleaved_rows",
       .caption = "2 experts of width 4, stored [E, 2I, H], gate and up in turn",
       .model = experts(4, 3),
       .sources = {{{2, 8, 3}}},
       .parts = even_odd,
       .experts = 2},
      {.name = "gated_expert_interleaved_bias",
       .rule = "gated_expert_interleaved_bias",
       .caption = "the bias of 2 experts of width 4, gate and up in turn",
       .model = experts(4, 3),
       .sources = {{{2, 8}}},
       .parts = {{"gate", rows(0, 1, 0, 1, 2, 8)}, {"up", rows(0, 1, 1, 1, 2, 8)}},
       .experts = 2},
      {.name = "gated_expert_of_two",
       .rule = "gated_expert_of_two",
       .caption = "2 experts of width 4, gate and up in a tensor [E, I, H] each",
       .model = experts(4, 3),
       .sources = {{{2, 4, 3}}, {{2, 4, 3}}},
       .parts = {{"gate", rows(0, 3, 0, 8)}, {"up", rows(1, 3, 0, 8)}},
       .experts = 2,
       .split = KeySplit::kSwiglu},
  };
}

std::vector<RuleExample> other_experts() {
  auto all = [](i64 items) { return std::vector<SourcePart>{{"down", rows(0, 1, 0, items)}}; };
  return {
      {.name = "expert_column",
       .rule = "expert_column",
       .caption = "2 experts of width 4 without gate, stored [E, I, H]",
       .model = experts(4, 3),
       .sources = {{{2, 4, 3}}},
       .parts = {{"up", rows(0, 1, 0, 24)}},
       .experts = 2},
      {.name = "expert_row",
       .rule = "expert_row",
       .caption = "2 experts of width 4, stored [E, H, I]",
       .model = experts(4, 3),
       .sources = {{{2, 3, 4}}},
       .parts = all(24),
       .experts = 2},
      {.name = "expert_row_transposed",
       .rule = "expert_row_transposed",
       .caption = "2 experts of width 4, stored [E, I, H]",
       .model = experts(4, 3),
       .sources = {{{2, 4, 3}}},
       .parts = all(24),
       .experts = 2},
      {.name = "expert_replicate",
       .rule = "expert_replicate",
       .caption = "the second bias of 2 experts, stored [E, H]",
       .model = experts(4, 3),
       .sources = {{{2, 3}}},
       .parts = all(6),
       .experts = 2},
  };
}

}  // namespace

std::span<const RuleExample> all_examples() {
  static const std::vector<RuleExample> examples = [] {
    std::vector<RuleExample> all;
    for (auto family : {plain, attentions, gated_experts, other_experts, state_space_examples}) {
      std::vector<RuleExample> more = family();
      all.insert(all.end(), more.begin(), more.end());
    }
    return all;
  }();
  return examples;
}

}  // namespace mckpt::impl
