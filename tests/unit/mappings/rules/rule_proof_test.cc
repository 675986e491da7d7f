// Every rule against its naive twin over thousands of small models; the proof that cells share out every
// item; and the same comparison with each rule broken, to show that it sees the break.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "core/base/error.h"
#include "mappings/config.h"
#include "tests/support/throws.h"
#include "tests/unit/mappings/rules/coverage.h"
#include "tests/unit/mappings/rules/naive_rules.h"

namespace mckpt::impl {
namespace rule_proof_test {

using HoldFunction = Holding (*)(const RuleCase&, i64 part, i64 expert);

std::vector<i64> items_in_order(std::span<const ItemRun> runs) {
  std::vector<i64> items;
  for (const ItemRun& run : runs)
    for (i64 i = 0; i < run.items(); i++) {
      i64 copied = is_copy(run.slot) ? copied_slot(run.slot) * kSlotItems + run.at(i) : 0;
      items.push_back(run.slot == kPaddingSlot ? -1
                      : is_copy(run.slot)      ? -2 - copied
                                               : run.slot * kSlotItems + run.at(i));
    }
  return items;
}

bool agrees(const RuleCase& c, i64 part, i64 expert, HoldFunction hold) {
  Holding h = hold(c, part, expert);
  NaiveHolding naive = naive_hold(c, part, expert);
  return h.shape.shape == naive.shape && h.partition_dim == naive.partition_dim && h.addend == naive.addend &&
         h.copies == naive.copies && items_in_order(h.runs) == naive.items;
}

bool agrees(const RuleCase& c, HoldFunction hold) {
  for (i64 expert = 0; expert < c.experts; expert++)
    for (i64 part = 0; part < c.parts; part++)
      if (!agrees(c, part, expert, hold)) return false;
  return true;
}

// All parameters that share the sources of a case, as FSDP would cut them at odd places.
ShardedTensor shard(const RuleCase& c, std::mt19937& random) {
  ShardedTensor t;
  t.name = to_string(c);
  for (const Shape& s : c.sources) t.slot_items.push_back(s.items());
  Holding first = hold_case(c, 0);
  bool whole = first.partition_dim < 0;  // then every cell is a replica
  for (i64 expert = 0; expert < c.experts; expert++)
    for (i64 part = 0; part < (whole ? 1 : c.parts); part += first.copies)
      t.cells.push_back(hold_case(c, part, expert).runs);
  for (i32 cell = 0; cell < static_cast<i32>(t.cells.size()); cell++) {
    i64 n = items_of(t.cells[static_cast<std::size_t>(cell)]);
    std::vector<i64> cuts = {0, n};
    for (int i = 0; i < 3; i++) cuts.push_back(std::uniform_int_distribution<i64>(0, n)(random));
    std::sort(cuts.begin(), cuts.end());
    for (std::size_t i = 1; i < cuts.size(); i++) t.shards.push_back({cell, {cuts[i - 1], cuts[i]}});
  }
  return t;
}

TEST(EveryRule, AgreesWithItsNaiveTwin) {
  std::size_t compared = 0;
  for (const Rule& rule : all_rules()) {
    std::vector<RuleCase> cases = cases_of(rule.name);
    EXPECT_GE(cases.size(), 24u) << rule.name;
    for (const RuleCase& c : cases) ASSERT_TRUE(agrees(c, hold_case)) << to_string(c);
    compared += cases.size();
  }
  EXPECT_GE(compared, 10'000u);
}

TEST(EveryRule, SharesOutEveryItemOnce) {
  std::mt19937 random(1);
  for (const Rule& rule : all_rules())
    for (const RuleCase& c : cases_of(rule.name))
      ASSERT_EQ(thrown_by([&] { check_coverage(shard(c, random)); }), "nothing") << to_string(c);
}

// The sizes at which it matters, where no one can write out the items.
TEST(EveryRule, SharesOutTheRealModels) {
  const std::vector<RuleCase> cases = {
      {"vocab", vocab_model(151'936), {{151'936, 4096}}, 8, 1, 152'576},
      {"qkv", attention_model(64, 4, 128, 4096), {{8192, 4096}, {512, 4096}, {512, 4096}}, 8},
      {"qkv", attention_model(16, 2, 256, 2048, true), {{8192, 2048}, {512, 2048}, {512, 2048}}, 4},
      {"qkv_joined", attention_model(16, 16, 72, 1152), {{3456, 1152}}, 8},
      {"qkv_keys_as_values", attention_model(16, 2, 512, 2816), {{8192, 2816}, {1024, 2816}}, 8},
      {"qkv_queries_only", attention_model(8, 2, 256, 1536), {{2048, 1536}}, 4},
      {"qkv_head_gates",
       with_head_gates(attention_model(96, 8, 128, 4096)),
       {{12'288, 4096}, {1024, 4096}, {1024, 4096}, {96, 4096}},
       4},
      {"gated_expert_of_two", moe_model(288, 1280, 4096), {{288, 1280, 4096}, {288, 1280, 4096}}, 2, 288},
      {"row", {}, {{7168, 16'384}}, 8},
      {"gated_mlp", {}, {{18'432, 7168}, {18'432, 7168}}, 8},
      {"gated_expert", moe_model(128, 768, 2048), {{128, 1536, 2048}}, 8, 128},
      {"gated_expert_transposed", moe_model(128, 1024, 2048), {{128, 2048, 2048}}, 4, 128},
      {"gated_expert_interleaved", moe_model(128, 2880, 2880), {{128, 2880, 5760}}, 8, 128},
      {"expert_row_transposed", moe_model(128, 2880, 2880), {{128, 2880, 2880}}, 8, 128},
      {"expert_row", moe_model(256, 512, 2048), {{256, 2048, 512}}, 2, 256},
      {"gdn_in_proj_grouped", gdn_model(16, 32, 128, 128, 2048), {{12'288, 2048}, {64, 2048}}, 8},
      {"gdn_qkvz", gdn_model(16, 32, 128, 128, 2048), {{8192, 2048}, {4096, 2048}}, 8},
      {"mamba_in_proj", mamba_model(128, 64, 8, 128, 4096), {{18'560, 4096}}, 8},
      {"mamba_conv", mamba_model(128, 64, 8, 128, 4096), {{10'240, 1, 4}}, 8},
  };
  std::mt19937 random(3);
  for (const RuleCase& c : cases)
    EXPECT_EQ(thrown_by([&] { check_coverage(shard(c, random)); }), "nothing") << to_string(c);
}

// Import gathers each shard along its runs, export scatters along the same: what comes back is the source.
TEST(EveryRule, ExportsWhatItImported) {
  std::mt19937 random(2);
  for (const Rule& rule : all_rules())
    for (const RuleCase& c : cases_of(rule.name)) {
      ShardedTensor t = shard(c, random);
      std::vector<std::vector<i64>> files;
      for (i64 n : t.slot_items) files.emplace_back(static_cast<std::size_t>(n), -7);
      for (const Shard& s : t.shards)
        for (i64 item : items_in_order(runs_of(t, s)))
          if (item >= 0)
            files[static_cast<std::size_t>(item / kSlotItems)][static_cast<std::size_t>(item % kSlotItems)] =
                item;
      for (std::size_t slot = 0; slot < files.size(); slot++)
        for (std::size_t i = 0; i < files[slot].size(); i++)
          ASSERT_EQ(files[slot][i], static_cast<i64>(slot) * kSlotItems + static_cast<i64>(i)) << t.name;
    }
}

// Rules broken on purpose.

Holding with_runs(Holding h, std::initializer_list<ItemRange> order) {
  std::vector<ItemRun> runs;
  for (ItemRange range : order) {
    std::vector<ItemRun> piece = cut(h.runs, range);
    runs.insert(runs.end(), piece.begin(), piece.end());
  }
  h.runs = std::move(runs);
  return h;
}

// Exchanges n local rows at a with those at b. pre: a + n <= b.
Holding swap_rows(Holding h, i64 a, i64 b, i64 n) {
  i64 row = h.shape.shape.row_items(), end = h.shape.shape.items();
  a *= row, b *= row, n *= row;
  return with_runs(std::move(h), {{0, a}, {b, b + n}, {a + n, b}, {a, a + n}, {b + n, end}});
}

Holding swap_halves(const RuleCase& c, i64 part, i64 expert) {
  Holding h = hold_case(c, part, expert);
  i64 half = h.shape.shape[0] / 2;
  return swap_rows(std::move(h), 0, half, half);
}

Holding swap_slots(Holding h, i32 a, i32 b) {
  for (ItemRun& run : h.runs) run.slot = run.slot == a ? b : run.slot == b ? a : run.slot;
  return h;
}

// The cells of the whole parameter cut into equal parts of rows: right for column parallel parameters, wrong
// for fused ones.
Holding plain_cut(const RuleCase& c, i64 part, i64 expert) {
  RuleCase one = c;
  one.parts = 1;
  Holding h = hold_case(one, 0, expert);
  i64 n = h.shape.shape.items() / c.parts;
  h.shape.shape = h.shape.shape.with_dim(0, h.shape.shape[0] / c.parts);
  return with_runs(std::move(h), {{part * n, (part + 1) * n}});
}

Holding reversed_cells(const RuleCase& c, i64 part, i64 expert) {
  return hold_case(c, c.parts - 1 - part, expert);
}

Holding next_expert(const RuleCase& c, i64 part, i64 expert) {
  return hold_case(c, part, (expert + 1) % c.experts);
}

template <const char* other>
Holding as_rule(const RuleCase& c, i64 part, i64 expert) {
  RuleCase mistaken = c;
  mistaken.rule = other;
  try {
    return hold_case(mistaken, part, expert);
  } catch (const Error&) {
    return hold_case(c, part, expert);  // refused for its shape; the square cases are not
  }
}

constexpr char kConv[] = "gdn_conv", kQkv[] = "qkv";
constexpr char kColumn[] = "column", kReplicate[] = "replicate", kGated[] = "gated_expert";
constexpr char kTransposed[] = "gated_expert_transposed", kInterleaved[] = "gated_expert_interleaved";
constexpr char kInterleavedRows[] = "gated_expert_interleaved_rows", kRow[] = "expert_row";
constexpr char kRowTransposed[] = "expert_row_transposed", kExpertColumn[] = "expert_column";

// All queries of the cell, then its keys, then its values: what a plain concatenation would hold.
Holding ungrouped(const RuleCase& c, i64 part, i64 expert) {
  Holding h = hold_case(c, part, expert);
  std::stable_sort(h.runs.begin(), h.runs.end(), [](const ItemRun& a, const ItemRun& b) {
    return std::pair(a.slot, a.begin) < std::pair(b.slot, b.begin);
  });
  return h;
}

Holding first_two_heads(const RuleCase& c, i64 part, i64 expert) {
  Holding h = hold_case(c, part, expert);
  i64 dim = c.model.text.head_dim;
  return h.shape.shape[0] < 2 * dim ? h : swap_rows(std::move(h), 0, dim, dim);
}

Holding keys_for_values(const RuleCase& c, i64 part, i64 expert) {
  Holding h = hold_case(c, part, expert);
  if (c.sources.size() == 3) return swap_slots(std::move(h), 1, 2);
  i64 dim = c.model.text.head_dim, rows = h.shape.shape[0];
  return rows < 2 * dim ? h : swap_rows(std::move(h), rows - 2 * dim, rows - dim, dim);
}

// The copy of the keys in front of the keys, and the keys where the copy should be.
Holding copies_for_keys(const RuleCase& c, i64 part, i64 expert) {
  return swap_slots(hold_case(c, part, expert), 1, copy_of(1));
}

// Values that are zeros, as in a layer without keys.
Holding zeros_for_copies(const RuleCase& c, i64 part, i64 expert) {
  return swap_slots(hold_case(c, part, expert), copy_of(1), kPaddingSlot);
}

Holding without_addend(const RuleCase& c, i64 part, i64 expert) {
  Holding h = hold_case(c, part, expert);
  h.addend = 0;
  return h;
}

bool is_gate(const ItemRun& run) { return run.slot == 3 || run.slot == copy_of(3); }

// The layout of attention that knows gates of heads: its rows at the end.
Holding gates_last(const RuleCase& c, i64 part, i64 expert) {
  Holding h = hold_case(c, part, expert);
  std::stable_partition(h.runs.begin(), h.runs.end(), [](const ItemRun& run) { return !is_gate(run); });
  return h;
}

// The gates of the cell, each once, in front of all their copies.
Holding gates_in_turn(const RuleCase& c, i64 part, i64 expert) {
  Holding h = hold_case(c, part, expert);
  std::vector<ItemRun> gates;
  std::ranges::copy_if(h.runs, std::back_inserter(gates), is_gate);
  std::stable_partition(gates.begin(), gates.end(), [](const ItemRun& run) { return run.slot == 3; });
  std::size_t next = 0;
  for (ItemRun& run : h.runs)
    if (is_gate(run)) run = gates[next++];
  return h;
}

Holding gates_by_head(const RuleCase& c, i64 part, i64 expert) {
  RuleCase ungated = c;
  ungated.model.text.heads *= c.model.text.output_gate ? 2 : 1;
  ungated.model.text.output_gate = false;
  return c.model.text.heads % c.parts == 0 ? hold_case(ungated, part, expert) : hold_case(c, part, expert);
}

// n rows of two sections of the cell exchanged.
template <int a, int b>
Holding swap_sections(const RuleCase& c, i64 part, i64 expert) {
  Holding h = hold_case(c, part, expert);
  const GdnConfig& g = c.model.gdn;
  const MambaConfig& m = c.model.mamba;
  bool conv = c.rule.ends_with("conv");
  std::vector<i64> sizes;
  if (g.key_heads > 0) {
    sizes = {g.qk(), g.qk(), g.v(), g.v(), g.value_heads, g.value_heads};
  } else {
    sizes = {m.inner(), m.inner(), m.group_state(), m.group_state(), m.heads};
    if (conv) sizes.erase(sizes.begin());
  }
  std::vector<i64> starts = {0};
  for (i64 n : sizes) starts.push_back(starts.back() + n / c.parts);
  return swap_rows(std::move(h), starts[a], starts[b], std::min(sizes[a], sizes[b]) / c.parts);
}

Holding betas_for_alphas(const RuleCase& c, i64 part, i64 expert) {
  return swap_slots(hold_case(c, part, expert), 0, 1);
}

// The rows of the cell's key heads as the file has them.
Holding as_in_the_file(const RuleCase& c, i64 part, i64 expert) {
  Holding h = hold_case(c, part, expert);
  std::vector<ItemRun> runs;
  for (const ItemRun& run : h.runs) {
    if (runs.empty() || runs.back().slot != run.slot) runs.push_back({run.slot, run.begin, 0, {}, {}});
    runs.back().length += run.items();
  }
  h.runs = std::move(runs);
  return h;
}

// The parts in reverse, whose rows then are in another order.
Holding parts_in_reverse(const RuleCase& c, i64 part, i64 expert) {
  Holding h = hold_case(c, part, expert);
  std::reverse(h.runs.begin(), h.runs.end());
  return h;
}

Holding padding_first(const RuleCase& c, i64 part, i64 expert) {
  Holding h = hold_case(c, part, expert);
  std::rotate(h.runs.begin(), h.runs.end() - 1, h.runs.end());
  return h;
}

struct Mutation {
  std::string_view rule, what;
  HoldFunction hold;
};

const std::vector<Mutation> kMutations = {
    {"column", "cells in reverse", reversed_cells},
    {"column", "halves exchanged", swap_halves},
    {"column_by_group", "cells in reverse", reversed_cells},
    {"column_by_group", "halves exchanged", swap_halves},
    {"replicate_row", "halves exchanged", swap_halves},
    {"replicate_row", "as a matrix", as_rule<kReplicate>},
    {"replicate_slice", "as a matrix", as_rule<kReplicate>},
    {"replicate_slice", "halves exchanged", swap_halves},
    {"replicate_transposed", "not transposed", as_rule<kReplicate>},
    {"column_transposed", "cells in reverse", reversed_cells},
    {"column_transposed", "not transposed", as_rule<kColumn>},
    {"column_swapped", "cells in reverse", reversed_cells},
    {"column_swapped", "halves as they are", as_rule<kColumn>},
    {"row", "cells in reverse", reversed_cells},
    {"row", "rows instead of columns", as_rule<kColumn>},
    {"replicate", "halves exchanged", swap_halves},
    {"replicate", "split by rows", as_rule<kColumn>},
    {"zero_centered_norm", "copied as it is", as_rule<kReplicate>},
    {"vocab", "padding in front", padding_first},
    {"vocab", "cells in reverse", reversed_cells},
    {"qkv", "keys for values", keys_for_values},
    {"qkv", "not by group", ungrouped},
    {"qkv", "two heads exchanged", first_two_heads},
    {"qkv", "gates beside their queries", gates_by_head},
    {"qkv_keys_as_values", "copies for keys", copies_for_keys},
    {"qkv_keys_as_values", "zeros for copies", zeros_for_copies},
    {"qkv_keys_as_values", "not by group", ungrouped},
    {"qkv_keys_as_values", "gates beside their queries", gates_by_head},
    {"qkv_head_gates", "keys for values", keys_for_values},
    {"qkv_head_gates", "not by group", ungrouped},
    {"qkv_head_gates", "two heads exchanged", first_two_heads},
    {"qkv_head_gates", "gates behind everything", gates_last},
    {"qkv_head_gates", "gates in turn", gates_in_turn},
    {"qkv_queries_only", "not by group", ungrouped},
    {"qkv_queries_only", "two heads exchanged", first_two_heads},
    {"head_norm_of_ones", "zeros", without_addend},
    {"qkv_gates_by_head", "not by group", ungrouped},
    {"qkv_gates_by_head", "keys for values", keys_for_values},
    {"qkv_gates_by_head", "all gates behind all queries", as_rule<kQkv>},
    {"qkv_joined", "keys for values", keys_for_values},
    {"qkv_joined", "not by group", ungrouped},
    {"qkv_joined", "two heads exchanged", first_two_heads},
    {"qkv_joined", "gates beside their queries", gates_by_head},
    {"mla_down", "halves exchanged", swap_halves},
    {"gated_mlp", "gate for up", swap_halves},
    {"gated_mlp", "gate and up concatenated, then cut", plain_cut},
    {"gated_mlp_joined", "gate for up", swap_halves},
    {"gated_mlp_joined", "gate and up as they are, then cut", plain_cut},
    {"gated_expert", "gate for up", swap_halves},
    {"gated_expert", "the next expert", next_expert},
    {"gated_expert", "taken for the transposed form", as_rule<kTransposed>},
    {"gated_expert", "taken for the interleaved form", as_rule<kInterleavedRows>},
    {"gated_expert", "gate and up concatenated, then cut", plain_cut},
    {"gated_expert_transposed", "gate for up", swap_halves},
    {"gated_expert_transposed", "the next expert", next_expert},
    {"gated_expert_transposed", "not transposed where square", as_rule<kGated>},
    {"gated_expert_transposed", "taken for the interleaved form", as_rule<kInterleaved>},
    {"gated_expert_interleaved", "even for odd", swap_halves},
    {"gated_expert_interleaved", "the next expert", next_expert},
    {"gated_expert_interleaved", "taken for halves", as_rule<kTransposed>},
    {"gated_expert_interleaved", "not transposed where square", as_rule<kInterleavedRows>},
    {"gated_expert_interleaved_rows", "even for odd", swap_halves},
    {"gated_expert_interleaved_rows", "taken for halves", as_rule<kGated>},
    {"gated_expert_interleaved_rows", "transposed where square", as_rule<kInterleaved>},
    {"gated_expert_interleaved_bias", "even for odd", swap_halves},
    {"gated_expert_interleaved_bias", "the next expert", next_expert},
    {"gated_expert_of_two", "gate for up", swap_halves},
    {"gated_expert_of_two", "the next expert", next_expert},
    {"gated_expert_of_two", "cells in reverse", reversed_cells},
    {"expert_column", "the next expert", next_expert},
    {"expert_column", "cells in reverse", reversed_cells},
    {"expert_row", "the next expert", next_expert},
    {"expert_row", "transposed where square", as_rule<kRowTransposed>},
    {"expert_row", "rows instead of columns", as_rule<kExpertColumn>},
    {"expert_row_transposed", "the next expert", next_expert},
    {"expert_row_transposed", "not transposed where square", as_rule<kRow>},
    {"expert_replicate", "the next expert", next_expert},
    {"gdn_in_proj", "q for k", swap_sections<0, 1>},
    {"gdn_in_proj", "k for v", swap_sections<1, 2>},
    {"gdn_in_proj", "v for z", swap_sections<2, 3>},
    {"gdn_in_proj", "beta for alpha", swap_sections<4, 5>},
    {"gdn_in_proj", "concatenated, then cut", plain_cut},
    {"gdn_in_proj_grouped", "q for k", swap_sections<0, 1>},
    {"gdn_in_proj_grouped", "k for v", swap_sections<1, 2>},
    {"gdn_in_proj_grouped", "v for z", swap_sections<2, 3>},
    {"gdn_in_proj_grouped", "beta for alpha", swap_sections<4, 5>},
    {"gdn_in_proj_grouped", "left grouped by key head", as_in_the_file},
    {"gdn_conv", "q for k", swap_sections<0, 1>},
    {"gdn_conv", "k for v", swap_sections<1, 2>},
    {"gdn_conv", "concatenated, then cut", plain_cut},
    {"column_joined", "cells in reverse", reversed_cells},
    {"column_joined", "parts in reverse", parts_in_reverse},
    {"gdn_qkvz", "sections as the file has them", as_in_the_file},
    {"gdn_qkvz", "not by head", ungrouped},
    {"gdn_qkvz", "cells in reverse", reversed_cells},
    {"gdn_ba", "not by head", ungrouped},
    {"gdn_ba", "beta for alpha", betas_for_alphas},
    {"gdn_conv_by_head", "not by head", ungrouped},
    {"gdn_conv_by_head", "as a plain convolution", as_rule<kConv>},
    {"mamba_in_proj", "z for x", swap_sections<0, 1>},
    {"mamba_in_proj", "B for C", swap_sections<2, 3>},
    {"mamba_in_proj", "x for B", swap_sections<1, 2>},
    {"mamba_in_proj", "cut as one block", plain_cut},
    {"mamba_conv", "x for B", swap_sections<0, 1>},
    {"mamba_conv", "B for C", swap_sections<1, 2>},
    {"mamba_conv", "cut as one block", plain_cut},
};

TEST(EveryRule, WouldBeCaughtIfItWereWrong) {
  for (const Mutation& mutation : kMutations) {
    std::size_t caught = 0;
    for (const RuleCase& c : cases_of(mutation.rule)) caught += !agrees(c, mutation.hold);
    EXPECT_GT(caught, 0u) << mutation.rule << ": " << mutation.what;
  }
  for (const Rule& rule : all_rules())
    EXPECT_TRUE(std::any_of(kMutations.begin(), kMutations.end(),
                            [&](const Mutation& m) { return m.rule == rule.name; }))
        << rule.name << " is not broken anywhere";
}

}  // namespace rule_proof_test
}  // namespace mckpt::impl
