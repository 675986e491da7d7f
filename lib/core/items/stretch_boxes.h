// The boxes that a stretch of a tensor consists of. Flat buffers cut tensors without regard to their rows:
// what a rank has of one is a stretch [begin, end) of its items in row-major order, and a store describes it
// as boxes.
//
//   tensor [4, 6], items [4, 21)      . . . . a a       a: offsets [0, 4], sizes [1, 2]
//                                     b b b b b b       b: offsets [1, 0], sizes [2, 6]
//                                     b b b b b b
//                                     c c c . . .       c: offsets [3, 0], sizes [1, 3]
//
// The items of a, then of b, then of c, each row-major, are the stretch in its own order.
#pragma once

#include <span>
#include <vector>

#include "core/base/int.h"
#include "core/items/item_run.h"

namespace mckpt::impl {

// Appends for each box its offsets and then its sizes, and returns the number of boxes: at most 2N - 1 for N
// dimensions, one for a scalar, none for an empty stretch. pre: 0 <= begin <= end <= the tensor's items,
// which fit 63 bits.
i64 stretch_boxes(std::span<const i64> dims, ItemRange stretch, std::vector<i64>& numbers);

}  // namespace mckpt::impl
