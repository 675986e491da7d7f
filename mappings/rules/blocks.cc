// Parts that many rules share: checks of numbers and shapes, and holdings that are boxes of rows.
//
// A holding of row boxes, worked out: two blocks of 4 rows with 10 items each, part 1 of 2.
//
//   block {slot 0, row 0, 4 rows}  ->  rows 2 and 3  ->  run [20+20]
//   block {slot 0, row 4, 4 rows}  ->  rows 6 and 7  ->  run [60+20]        local shape [4, 10]
//
// Every check throws before a run is made, so a rule never returns runs that leave their source.
#include "mappings/rules/blocks.h"
#include "core/base/error.h"

namespace mckpt::impl {

i64 positive(i64 n, std::string_view what) {
  if (n <= 0)
    throw Error(Code::kModelNumbers, cat("the model's configuration does not give ", what))
        .expected("a positive number")
        .found(n);
  return n;
}

i64 quotient(i64 a, std::string_view what_a, i64 b, std::string_view what_b) {
  if (positive(a, what_a) % positive(b, what_b) != 0)
    throw Error(Code::kModelNumbers, cat(what_a, " does not divide by ", what_b))
        .expected(cat("a multiple of ", b))
        .found(a);
  return a / b;
}

i64 product(std::initializer_list<i64> factors, const char* what) {
  i64 n = 1;
  for (i64 f : factors) n = checked_mul(n, f, what);
  return n;
}

void expect_shape(const RuleInput& in, int slot, std::string_view role, const Shape& expected,
                  std::string_view why) {
  const Shape& found = in.sources[slot].shape;
  if (found == expected) return;
  throw Error(Code::kSourceShape, cat(role, " does not have the shape of ", why))
      .expected(to_string(expected))
      .found(to_string(found));
}

void expect_rank(const RuleInput& in, int slot, std::string_view role, int least, int most) {
  const Shape& found = in.sources[slot].shape;
  if (least <= found.rank() && found.rank() <= most) return;
  throw Error(Code::kSourceShape, cat(role, " has a wrong number of dimensions"))
      .expected(least == most ? cat(least) : cat(least, " to ", most))
      .found(cat(found.rank(), ", ", to_string(found)));
}

Shape weight_or_bias(const RuleInput& in, int slot, i64 rows, i64 columns) {
  bool bias = in.sources[slot].shape.rank() == 1;
  return bias ? Shape{rows} : Shape{rows, columns};
}

void RowRuns::add(i32 slot, i64 first_row, i64 rows) { add(slot, first_row, rows, 0, 1); }

// Only boxes without a loop are joined.
void RowRuns::add(i32 slot, i64 first_row, i64 rows, i64 step, i64 times) {
  ItemRun run{slot, first_row * row_items_, rows * row_items_, {}, {}};
  if (times > 1) run.inner = {step * row_items_, times};
  if (run.items() == 0) return;
  bool plain = times == 1 && !runs_.empty() && runs_.back().slot == slot && runs_.back().inner.count == 1;
  if (plain && runs_.back().end() == run.begin) {
    runs_.back().length += run.length;
  } else {
    runs_.push_back(run);
  }
}

// Block by block: the cell's part of block 0, then its part of block 1, and so on.
Holding hold_blocks(std::span<const RowBlock> blocks, const Shape& like, Part part, std::string_view what) {
  RowRuns rows(like.row_items());
  i64 local_rows = 0;
  for (const RowBlock& block : blocks) {
    ItemRange own = own_part(block.rows, part, what);
    rows.add(block.slot, block.first_row + own.begin, own.items());
    local_rows += own.items();
  }
  return {LocalShape{like.with_dim(0, local_rows)}, 0, rows.take(), 0};
}

}  // namespace mckpt::impl
