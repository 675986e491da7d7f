// Row parallel: the columns of a matrix in equal parts. The bias of such a layer is added after the sum over
// the cells, so every cell holds all of it: rule `replicate`.
//
//   cell t holds W[:, t*n : (t+1)*n], n = columns / cells: one run, a strip
//
//   weight [3, 4]              cell 0 of 2, [3, 2]     cell 1 of 2, [3, 2]
//    0  1  2  3                 0  1                    2  3
//    4  5  6  7                 4  5                    6  7
//    8  9 10 11                 8  9                   10 11
//                              run [0+2 x3/4]          run [2+2 x3/4]: 3 pieces of 2 items, 4 items apart
#include "mappings/rules/blocks.h"
#include "mappings/rules/families.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kRoles[] = {"weight"};

Holding hold_row(const RuleInput& in) {
  expect_rank(in, 0, kRoles[0], 2, 2);
  const Shape& source = in.sources[0].shape;
  ItemRange own = own_part(source[1], in.part, "the number of columns of the weight");
  ItemRun strip{0, own.begin, own.items(), {source[1], source[0]}, {}};
  return {LocalShape{source.with_dim(1, own.items())}, 1, {canonical(strip)}, 0};
}

constexpr Rule kRules[] = {
    {"row", kRoles, "the columns of a matrix in equal parts", hold_row},
};

}  // namespace

std::span<const Rule> row_rules() { return kRules; }

}  // namespace mckpt::impl
