// Box moves: two boxes of one tensor, each stored row-major by itself, and the moves that carry the items
// that both boxes contain from the first to the second. Every box of a checkpoint that keeps its key (a
// reshard, a saved live model, a renamed layer) is copied by such moves, without a walk over single items.
//
//   tensor [8, 4]      from = rows 0-4, all columns     to = rows 3-7, columns 1-2     common: x
//
//         0  1  2  3              from, 5 x 4                 to, 5 x 2
//     3   .  x  x  .          12 [13][14] 15               [0][1]
//     4   .  x  x  .          16 [17][18] 19               [2][3]         one move: [13+2 x2/4] -> [0+2 x2/2]
//
// The cost is the number of dimensions. A move has two loops, so boxes of up to three dimensions are one
// move, and more dimensions that cannot be joined are written out as several moves.
#pragma once

#include <span>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

struct Move;

// A box without its tensor. The view owns nothing; both spans have one number for each dimension.
struct BoxView {
  std::span<const i64> offsets, sizes;
};

// Appends the moves to `out`; boxes without a common item add none. Every move copies, reads `slot`, and
// counts positions in the row-major order of its own box. pre: both boxes are of one tensor, and so have the
// same number of dimensions.
void append_box_moves(const BoxView& from, const BoxView& to, i32 slot, std::vector<Move>& out);

}  // namespace mckpt::impl
