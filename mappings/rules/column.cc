// Column parallel: dimension 0 in equal parts. Used for weights, biases, convolutions and vectors with a
// value per head, and for queries and up projections of MLA, because their rows are ordered by head.
//
//   cell t holds W[t*n : (t+1)*n, ...], n = rows / cells: one run
//
//   weight [4, 3]              cell 0 of 2, [2, 3]     cell 1 of 2, [2, 3]
//    0  1  2                    0  1  2                 6  7  8
//    3  4  5                    3  4  5                 9 10 11
//    6  7  8                   run [0+6]               run [6+6]
//    9 10 11
//
// Two forms of files differ in the order of items:
//
//   column_transposed   the file has [in, out]:                0  1  2  3         cell 0 of 2    0  4
//                                                              4  5  6  7                        1  5
//   column_swapped      the halves of each row change places:  0  1 | 2  3        cell 0 of 2    2  3  0  1
//                                                              4  5 | 6  7
//
// A norm over all keys is split by groups of keys and values, but where the cells are more than the groups,
// several of them have the part of one group. 2 groups over 4 cells:
//
//   cells 0 and 1    the items of group 0          cells 2 and 3    the items of group 1
//
// A tensor that files have in parts, one below the other, is cut as if it were whole. 3, 3 and 2 rows over 2
// cells:
//
//   part 0   part 1   part 2      cell 0                  cell 1
//   0 1 2    3 4 5    6 7         all of part 0, and 3    4 and 5, and all of part 2
//
// ("Column" is Megatron's word: a layer computes x * W^T, so the rows of W are the columns of the factor.)
#include <algorithm>

#include "core/base/error.h"
#include "mappings/config.h"
#include "mappings/rules/blocks.h"
#include "mappings/rules/families.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kRoles[] = {"weight"};

Holding hold_column(const RuleInput& in) {
  expect_rank(in, 0, kRoles[0], 1, Shape::kMaxRank);
  const Shape& source = in.sources[0].shape;
  RowBlock whole{0, 0, source[0]};
  return hold_blocks({&whole, 1}, source, in.part, "the number of rows of the weight");
}

// The columns of the file are Megatron's rows: a transpose, as one run with two loops.
Holding hold_transposed(const RuleInput& in) {
  expect_rank(in, 0, kRoles[0], 2, 2);
  const Shape& source = in.sources[0].shape;
  i64 columns = source[0], rows = source[1];
  ItemRange own = own_part(rows, in.part, "the number of columns of the weight");
  ItemRun turned{0, own.begin, 1, {rows, columns}, {1, own.items()}};
  return {LocalShape{{own.items(), columns}}, 0, {turned}, 0};
}

// Two runs a row: the loops of a run only go forward, and here the second half comes first.
Holding hold_swapped(const RuleInput& in) {
  expect_rank(in, 0, kRoles[0], 2, 2);
  const Shape& source = in.sources[0].shape;
  i64 half = quotient(source[1], "the number of columns of the weight", 2, "the number of halves");
  ItemRange own = own_part(source[0], in.part, "the number of rows of the weight");
  std::vector<ItemRun> runs;
  for (i64 row = own.begin; row < own.end; row++)
    for (i64 side : {1, 0}) runs.push_back({0, (2 * row + side) * half, half, {}, {}});
  return {LocalShape{source.with_dim(0, own.items())}, 0, std::move(runs), 0};
}

Holding hold_by_group(const RuleInput& in) {
  expect_rank(in, 0, kRoles[0], 1, 1);
  const Shape& source = in.sources[0].shape;
  i64 cells = in.part.count, groups = positive(in.tower.kv_groups, "the number of key-value groups");
  if (groups % cells != 0 && cells % groups != 0)
    throw Error(Code::kBadGrid,
                "of the number of key-value groups and the parallel size, neither divides the other")
        .expected(cat("a multiple or a divisor of ", cells))
        .found(groups);
  i64 rows =
      product({groups, positive(in.tower.head_dim, "the size of a head")}, "the number of rows of the keys");
  expect_shape(in, 0, kRoles[0], source.with_dim(0, rows), "key-value groups * head size");
  i64 copies = std::max<i64>(cells / groups, 1);
  RowBlock whole{0, 0, source[0]};
  Holding holding = hold_blocks({&whole, 1}, source, {in.part.index / copies, cells / copies},
                                "the number of rows of the weight");
  holding.copies = copies;
  if (cells > 1 && copies == cells)
    holding.partition_dim = -1, holding.copies = 1;  // one part, which every cell has
  return holding;
}

Holding hold_joined(const RuleInput& in) {
  expect_rank(in, 0, kRoles[0], 1, Shape::kMaxRank);
  const Shape& first = in.sources[0].shape;
  i64 all = 0;
  for (int slot = 0; slot < static_cast<int>(in.sources.size()); slot++) {
    const Shape& part = in.sources[static_cast<std::size_t>(slot)].shape;
    expect_rank(in, slot, kRoles[0], first.rank(), first.rank());
    expect_shape(in, slot, kRoles[0], first.with_dim(0, part[0]), "the first part but for its rows");
    all = checked_add(all, part[0], "the rows of all parts");
  }
  const ItemRange own = own_part(all, in.part, "the number of rows of all parts");
  RowRuns rows(first.row_items());
  i64 begin = 0;
  for (i32 slot = 0; slot < static_cast<i32>(in.sources.size()); slot++) {
    const i64 end = begin + in.sources[static_cast<std::size_t>(slot)].shape[0];
    const i64 from = std::max(begin, own.begin), to = std::min(end, own.end);
    if (from < to) rows.add(slot, from - begin, to - from);
    begin = end;
  }
  return {LocalShape{first.with_dim(0, own.items())}, 0, rows.take(), 0};
}

constexpr Rule kRules[] = {
    {"column", kRoles, "dimension 0 in equal parts", hold_column},
    {"column_transposed", kRoles, "dimension 1 in equal parts, transposed", hold_transposed},
    {"column_swapped", kRoles, "dimension 0 in equal parts, the two halves of each row exchanged",
     hold_swapped},
    {"column_by_group", kRoles,
     "a vector by groups of keys and values, a group on several cells if they are more", hold_by_group},
    {.name = "column_joined",
     .roles = kRoles,
     .summary = "parts of a tensor, one below the other, and their rows in equal parts",
     .hold = hold_joined,
     .parts_of_sources = true},
};

}  // namespace

std::span<const Rule> column_rules() { return kRules; }

}  // namespace mckpt::impl
