// Items at strides in a file, as torch saves a transposed or sliced tensor, read into row-major memory.
//
//   tensor [2, 3], stored as its transpose    file    a d b e c f
//                                             memory  a b c d e f
//   loops {count, file stride, memory stride} {3, 2, 1} along a row, {2, 1, 3} over the rows
#pragma once

#include <span>
#include <vector>

#include "io/file/file.h"

namespace mckpt::impl {

// One loop over items: their number, and how far apart they are in the file and in memory, in items. A
// dimension of a tensor is a loop.
struct StridedLoop {
  i64 count = 1;
  i64 file_stride = 0;
  i64 memory_stride = 0;
};

// Whether these are the strides of a contiguous tensor, which can be read without gathering. Strides of
// dimensions of size 1 do not matter. pre: as many strides as sizes.
bool is_row_major(std::span<const i64> sizes, std::span<const i64> strides);

// Reads the items of the nested loops; the first is at byte `offset` of the file and at the beginning of
// `to`. The loops may be in any order: they are walked in the order of the file, with reads of up to 1 MiB
// through `scratch`. Throws kReadFailed. pre: counts are positive, strides not negative, item_bytes is 1, 2,
// 4, 8 or 16; the items are inside the file, and inside `to`.
void read_strided(const ByteSource& file, i64 offset, std::vector<StridedLoop> loops, i64 item_bytes,
                  std::span<u8> to, std::vector<u8>& scratch);

}  // namespace mckpt::impl
