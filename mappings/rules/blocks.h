// The parts that rules are made of: checks of sources and numbers, and holdings that are boxes of rows.
//
// Most fused parameters are blocks of rows of their sources, and every cell owns its part of each block:
//
//   blocks   z ~~~~~~~~  x ########  B ....      cell 0 of 2   ~~~~####..
//   cell     00001111      00001111    0011      cell 1 of 2   ~~~~####..
#pragma once

#include <initializer_list>

#include "core/items/placement.h"
#include "mappings/rule.h"

namespace mckpt::impl {

// Throws kModelNumbers unless n > 0; returns n.
i64 positive(i64 n, std::string_view what);
// a / b, which must be whole and positive; throws kModelNumbers that names both.
i64 quotient(i64 a, std::string_view what_a, i64 b, std::string_view what_b);
// Throws kSizeOverflow that names `what`.
i64 product(std::initializer_list<i64> factors, const char* what);

// Throws kSourceShape that names the role, `why` and both shapes.
void expect_shape(const RuleInput& in, int slot, std::string_view role, const Shape& expected,
                  std::string_view why);
// Throws kSourceShape unless the source has `least` to `most` dimensions.
void expect_rank(const RuleInput& in, int slot, std::string_view role, int least, int most);

// The shape of a weight with `rows` rows, or of its bias: whichever the source is. pre: slot exists.
Shape weight_or_bias(const RuleInput& in, int slot, i64 rows, i64 columns);

// The cell's part of n; throws kBadGrid that names `what`.
inline ItemRange own_part(i64 n, Part part, std::string_view what) {
  return equal_part(n, part.count, part.index, what);
}

// Collects runs that are boxes of rows, one after the other. A box that continues the box before it is joined
// with it, and a box of no rows is left out, so the runs are few: rows [0, 4) and then [4, 6) of one slot are
// one run.
class RowRuns {
 public:
  explicit RowRuns(i64 row_items) : row_items_(row_items) {}

  void add(i32 slot, i64 first_row, i64 rows);
  // Adds `times` boxes of `rows` rows each, which begin `step` rows apart.
  void add(i32 slot, i64 first_row, i64 rows, i64 step, i64 times);

  std::vector<ItemRun> take() { return std::move(runs_); }

 private:
  i64 row_items_;
  std::vector<ItemRun> runs_;
};

// Rows [first_row, first_row + rows) of source `slot`: a section of a fused parameter, over all cells.
struct RowBlock {
  i32 slot = 0;
  i64 first_row = 0, rows = 0;
};

// The cell's part of every block, in the order of the blocks. `like` gives all dimensions but the first.
// Throws kBadGrid that names `what` when a block does not divide.
Holding hold_blocks(std::span<const RowBlock> blocks, const Shape& like, Part part, std::string_view what);

}  // namespace mckpt::impl
