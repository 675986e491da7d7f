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
// A norm over all keys is split by groups of keys and values, but where the cells are more than the groups, several of
// them have the part of one group. 2 groups over 4 cells:
//
//   cells 0 and 1    the items of group 0          cells 2 and 3    those of group 1
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

constexpr Rule kRules[] = {
    {"column", kRoles, "dimension 0 in equal parts", hold_column},
    {"column_by_group", kRoles,
     "a vector by groups of keys and values, a group on several cells if they are more", hold_by_group},
};

}  // namespace

std::span<const Rule> column_rules() { return kRules; }

}  // namespace mckpt::impl
