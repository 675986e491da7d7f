// The first layer of one gated expert, taken from a tensor with gate and up of all experts. Every form gives
// the same parameter: [2n, hidden] ([2n] for a bias), where n is the cell's share of the width; gate rows
// first, then up rows:
//
//   gated_expert                     [E, 2I, H]   rows: all of gate, then all of up
//   gated_expert_transposed          [E, H, 2I]   columns: all of gate, then all of up
//   gated_expert_interleaved         [E, H, 2I]   columns: gate, up, gate, up, ...
//   gated_expert_interleaved_rows    [E, 2I, H]   rows: gate, up, gate, up, ...
//   gated_expert_interleaved_bias    [E, 2I]      items: gate, up, gate, up, ...
//   gated_expert_of_two              [E, I, H]    a tensor with the gates of all experts, another one with their ups
//
// The units of one expert of width I = 4 in the file, and what two cells hold of them:
//
//   in halves    g0 g1 g2 g3 u0 u1 u2 u3        cell 0   g0 g1 u0 u1
//   interleaved  g0 u0 g1 u1 g2 u2 g3 u3        cell 1   g2 g3 u2 u3
//
// A unit is a row of `hidden` items, a column (its items are then `2I` apart in the file), or one item of a
// bias.
#include "core/items/item_run.h"
#include "mappings/config.h"
#include "mappings/key_split.h"
#include "mappings/rule.h"
#include "mappings/rules/blocks.h"
#include "mappings/rules/expert.h"
#include "mappings/rules/families.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kRoles[] = {"gate_up_proj"};
constexpr std::string_view kBiasRoles[] = {"gate_up_proj_bias"};
constexpr std::string_view kTwoRoles[] = {"gate_proj", "up_proj"};
constexpr std::string_view kWidth = "the width of an expert";

// One expert's slice has gate in its first half of rows, up in the second.
Holding hold_rows(const RuleInput& in) {
  ExpertSizes s = expert_sizes(in);
  Shape slice = {2 * s.width, s.hidden};
  expect_form(in, kRoles[0], {s.experts, slice[0], slice[1]}, {s.experts, slice[1], slice[0]},
              "gated_expert_transposed");
  i64 first = in.expert * slice[0];
  RowBlock blocks[] = {{0, first, s.width}, {0, first + s.width, s.width}};
  return hold_blocks(blocks, slice, in.part, kWidth);
}

// Gate starts at column 0, up at column `up`; both take every `step`-th column.
Holding hold_columns(const RuleInput& in, i64 up, i64 step) {
  ExpertSizes s = expert_sizes(in);
  i64 columns = 2 * s.width;
  expect_form(in, kRoles[0], {s.experts, s.hidden, columns}, {s.experts, columns, s.hidden},
              step == 1 ? "gated_expert" : "gated_expert_interleaved_rows");
  ItemRange own = own_part(s.width, in.part, kWidth);
  i64 first = in.expert * s.hidden * columns + own.begin * step;
  Loop units = {step, own.items()};
  return {LocalShape{{2 * own.items(), s.hidden}},
          0,
          {columns_as_rows(first, s.hidden, columns, units),
           columns_as_rows(first + up, s.hidden, columns, units)},
          0};
}

Holding hold_transposed(const RuleInput& in) { return hold_columns(in, in.model.moe.ffn, 1); }

Holding hold_interleaved(const RuleInput& in) { return hold_columns(in, 1, 2); }

// Gate in the even rows of the slice, up in the odd ones: two runs, each of every other row.
Holding hold_alternating(const RuleInput& in, const ExpertSizes& s, const Shape& slice) {
  ItemRange own = own_part(s.width, in.part, kWidth);
  i64 first = in.expert * slice[0] + 2 * own.begin;
  RowRuns rows(slice.row_items());
  rows.add(0, first, 1, 2, own.items());
  rows.add(0, first + 1, 1, 2, own.items());
  return {LocalShape{slice.with_dim(0, 2 * own.items())}, 0, rows.take(), 0};
}

Holding hold_interleaved_rows(const RuleInput& in) {
  ExpertSizes s = expert_sizes(in);
  Shape slice = {2 * s.width, s.hidden};
  expect_form(in, kRoles[0], {s.experts, slice[0], slice[1]}, {s.experts, slice[1], slice[0]},
              "gated_expert_interleaved");
  return hold_alternating(in, s, slice);
}

Holding hold_interleaved_bias(const RuleInput& in) {
  ExpertSizes s = expert_sizes(in);
  expect_shape(in, 0, kBiasRoles[0], {s.experts, 2 * s.width}, "experts by twice their width");
  return hold_alternating(in, s, {2 * s.width});
}

// The expert's slice of each of two tensors.
Holding hold_of_two(const RuleInput& in) {
  ExpertSizes s = expert_sizes(in);
  for (int slot : {0, 1})
    expect_shape(in, slot, kTwoRoles[slot], {s.experts, s.width, s.hidden},
                 "experts, their width and the hidden size");
  i64 first = in.expert * s.width;
  RowBlock blocks[] = {{0, first, s.width}, {1, first, s.width}};
  return hold_blocks(blocks, {s.width, s.hidden}, in.part, kWidth);
}

constexpr Rule kRules[] = {
    {"gated_expert", kRoles, "one expert of [E, 2I, H]: its part of gate above its part of up", hold_rows,
     KeySplit::kSwiglu},
    {"gated_expert_transposed", kRoles, "one expert of [E, H, 2I]: its part of gate above its part of up",
     hold_transposed, KeySplit::kSwiglu},
    {"gated_expert_interleaved", kRoles,
     "one expert of [E, H, 2I] with gate in the even and up in the odd columns", hold_interleaved,
     KeySplit::kSwiglu},
    {"gated_expert_interleaved_rows", kRoles,
     "one expert of [E, 2I, H] with gate in the even and up in the odd rows", hold_interleaved_rows,
     KeySplit::kSwiglu},
    {"gated_expert_interleaved_bias", kBiasRoles, "the bias of one expert of [E, 2I], gate and up in turn",
     hold_interleaved_bias, KeySplit::kSwiglu},
    {"gated_expert_of_two", kTwoRoles,
     "one expert of two tensors [E, I, H]: its part of gate above its part of up", hold_of_two,
     KeySplit::kSwiglu},
};

}  // namespace

std::span<const Rule> gated_expert_rules() { return kRules; }

}  // namespace mckpt::impl
