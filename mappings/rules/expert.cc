// The layers of an expert without a gate, taken from a tensor of all experts (E experts of width I, hidden
// size H):
//
//   expert_column             [E, I, H]   first layer of an expert without gate: rows in equal parts
//   expert_row                [E, H, I]   second layer: columns in equal parts
//   expert_row_transposed     [E, I, H]   second layer, stored transposed
//   expert_replicate          [E, H]      bias of the second layer: every cell holds all of it
//
// For example E = 2, I = 4, H = 2, expert 1 (items 8 to 15 of the source), cell 1 of 2:
//
//   expert_column             12 13 14 15, the last two rows        run [12+4]              local [2, 2]
//   expert_row                10 11 | 14 15, the last two columns   run [10+2 x2/4]         local [2, 2]
//   expert_row_transposed     12 14 | 13 15, turned                 run [12+1 x2/2 x2/1]    local [2, 2]
//   expert_replicate          2 3 of the bias                       run [2+2]               local [2]
//
// Gated first layers are in gated_expert.cc. Experts with a tensor each use the plain rules `gated_mlp`,
// `column` and `row`.
#include "mappings/rules/expert.h"

#include "core/base/error.h"
#include "core/items/item_run.h"
#include "core/items/placement.h"
#include "core/items/shape.h"
#include "mappings/config.h"
#include "mappings/rule.h"
#include "mappings/rules/blocks.h"
#include "mappings/rules/families.h"

namespace mckpt::impl {

ExpertSizes expert_sizes(const RuleInput& in) {
  const MoeConfig& moe = in.model.moe;
  ExpertSizes s{positive(moe.experts, "the number of experts"), positive(moe.ffn, "the width of an expert"),
                moe.latent > 0 ? moe.latent : positive(in.tower.hidden, "the hidden size")};
  product({s.experts, s.width, 2, s.hidden}, "the number of items of all experts");
  if (in.expert < 0 || in.expert >= s.experts)
    throw Error(Code::kModelNumbers, "there is no such expert")
        .expected(cat("an expert of [0, ", s.experts, ")"))
        .found(in.expert);
  return s;
}

void expect_form(const RuleInput& in, std::string_view role, const Shape& expected, const Shape& other,
                 std::string_view other_rule) {
  const Shape& found = in.sources[0].shape;
  if (found == expected) return;
  Error error(Code::kSourceShape,
              cat(role, " does not have the shape of experts, their width and the hidden size"));
  error.expected(to_string(expected)).found(to_string(found));
  if (found == other) error.help(cat("the file stores the experts transposed; use rule ", other_rule));
  throw error;
}

ItemRun columns_as_rows(i64 begin, i64 rows, i64 row_items, Loop columns) {
  return {0, begin, 1, {row_items, rows}, columns};
}

namespace {

// The roles of the sources, as errors name them.
constexpr std::string_view kUp[] = {"up_proj"};
constexpr std::string_view kDown[] = {"down_proj"};
constexpr std::string_view kDownBias[] = {"down_proj_bias"};
constexpr std::string_view kWidth = "the width of an expert";

// Rows of the slice of one expert.
Holding hold_column(const RuleInput& in) {
  ExpertSizes s = expert_sizes(in);
  expect_shape(in, 0, kUp[0], {s.experts, s.width, s.hidden}, "experts, their width and the hidden size");
  RowBlock block{0, in.expert * s.width, s.width};
  return hold_blocks({&block, 1}, {s.width, s.hidden}, in.part, kWidth);
}

Holding hold_row(const RuleInput& in) {
  ExpertSizes s = expert_sizes(in);
  expect_form(in, kDown[0], {s.experts, s.hidden, s.width}, {s.experts, s.width, s.hidden},
              "expert_row_transposed");
  ItemRange own = own_part(s.width, in.part, kWidth);
  i64 first = in.expert * s.hidden * s.width + own.begin;
  ItemRun strip{0, first, own.items(), {s.width, s.hidden}, {}};
  return {LocalShape{{s.hidden, own.items()}}, 1, {canonical(strip)}, 0};
}

// The cell's rows of the file are its columns in Megatron: a transpose, as one run with two loops.
Holding hold_row_transposed(const RuleInput& in) {
  ExpertSizes s = expert_sizes(in);
  expect_form(in, kDown[0], {s.experts, s.width, s.hidden}, {s.experts, s.hidden, s.width}, "expert_row");
  ItemRange own = own_part(s.width, in.part, kWidth);
  i64 first = (in.expert * s.width + own.begin) * s.hidden;
  ItemRun turned = columns_as_rows(first, own.items(), s.hidden, {1, s.hidden});
  return {LocalShape{{s.hidden, own.items()}}, 1, {turned}, 0};
}

Holding hold_replicate(const RuleInput& in) {
  ExpertSizes s = expert_sizes(in);
  expect_shape(in, 0, kDownBias[0], {s.experts, s.hidden}, "experts by the hidden size");
  return {LocalShape{{s.hidden}}, -1, {{0, in.expert * s.hidden, s.hidden, {}, {}}}, 0};
}

constexpr Rule kRules[] = {
    {"expert_column", kUp, "one expert of [E, I, H], rows in equal parts", hold_column},
    {"expert_row", kDown, "one expert of [E, H, I], columns in equal parts", hold_row},
    {"expert_row_transposed", kDown, "one expert of [E, I, H], rows in equal parts, transposed",
     hold_row_transposed},
    {"expert_replicate", kDownBias, "one expert of [E, H], on every cell", hold_replicate},
};

}  // namespace

std::span<const Rule> expert_rules() { return kRules; }

}  // namespace mckpt::impl
