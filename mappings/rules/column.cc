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
// ("Column" is Megatron's word: a layer computes x * W^T, so the rows of W are the columns of the factor.)
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

constexpr Rule kRules[] = {
    {"column", kRoles, "dimension 0 in equal parts", hold_column},
};

}  // namespace

std::span<const Rule> column_rules() { return kRules; }

}  // namespace mckpt::impl
