// Column parallel: dimension 0 in equal parts. Used for weights, biases, convolutions and vectors with a
// value per head, and for queries and up projections of MLA, because their rows are ordered by head.
//
//   cell t holds W[t*n : (t+1)*n, ...], n = rows / cells: one run
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
