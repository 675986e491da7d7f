// The content of both kinds of drawings: matrices of squares, first the sources, then one for every cell.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

struct RuleExample;

// An item that all cells have.
inline constexpr i32 kEveryCell = -1;

// One item as it is drawn: what it is (part and item) and who holds it.
struct Square {
  i32 part = -1;  // of the example's parts; -1: padding
  i64 item = 0;   // of the source
  i32 cell = kEveryCell;
};

// A key of the checkpoint beside the rows that it stores.
struct RowLabel {
  i64 first_row = 0, rows = 0;
  std::string_view text;
};

// One matrix of squares: a source, or what one cell holds.
struct Panel {
  std::string title, shape;
  i64 rows = 0, columns = 0;
  i64 group_rows = 0;           // rows of one expert; a gap is drawn after each group
  std::vector<Square> squares;  // row by row
  std::vector<RowLabel> labels;

  bool gap_above(i64 row) const { return row > 0 && row % group_rows == 0; }
};

// Sources first, then every cell of every expert.
struct Picture {
  std::vector<Panel> sources, cells;
};

Picture lay_out(const RuleExample& example);

// "q12"; "." for padding.
std::string mark_of(const RuleExample& example, const Square& square);

}  // namespace mckpt::impl
