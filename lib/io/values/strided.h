// Items that lie in a file at strides, as torch saves a transposed or sliced tensor, read into row-major
// memory.
#pragma once

#include <span>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

class ByteSource;

// One loop over items: how many, and how far apart they are in the file and in memory, in items.
struct StridedLoop {
  i64 count = 1;
  i64 file_stride = 0;
  i64 memory_stride = 0;
};

// Whether items at these strides lie as those of a contiguous tensor do, and nothing is to be gathered.
// pre: as many strides as sizes.
bool is_row_major(std::span<const i64> sizes, std::span<const i64> strides);

// Reads the items of the nested loops; the first lies at byte `offset` of the file and at the beginning of
// `to`. The loops may be in any order: they are walked in the order of the file, with reads of up to 1 MiB
// through `scratch`. pre: counts are positive, strides not negative, item_bytes is 1, 2, 4, 8 or 16.
void read_strided(const ByteSource& file, i64 offset, std::vector<StridedLoop> loops, i64 item_bytes,
                  std::span<u8> to, std::vector<u8>& scratch);

}  // namespace mckpt::impl
