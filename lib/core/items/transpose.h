// Transposes in tiles, because item by item a transpose runs at a twentieth of the speed of memory:
//
//   to[c*to_row + r*to_step] = from[r*from_row + c*from_step]      for r < rows, c < columns
//
// Distances are counted in items.
#pragma once

#include "core/base/int.h"

namespace mckpt::impl {

// The matrix to transpose: `rows` x `columns` items of the source, with the distance between neighbours on
// both sides. A 2 x 3 matrix that becomes 3 x 2: rows 2, columns 3, from_row 3, from_step 1, to_row 2,
// to_step 1.
struct TransposeShape {
  i64 rows = 0, columns = 0;
  i64 from_row = 0, from_step = 1;  // a step of 2 reads every other column
  i64 to_row = 0, to_step = 1;
};

// pre: item_bytes is 1, 2, 4, 8 or 16; source and destination do not overlap and need not be aligned. Fast
// for 2 and 4 bytes with a from_step of 1 or 2, and best with a to_step of 1.
void transpose(const TransposeShape& shape, i64 item_bytes, const u8* from, u8* to);

}  // namespace mckpt::impl
