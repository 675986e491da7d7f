// Walks the dimensions from the innermost to the outermost and intersects the boxes in each. A dimension
// becomes a loop with one stride on either side; a loop that steps over exactly the loop inside it is joined
// with it, so that whole rows become one long copy:
//
//   boxes [4, 6] at row 0 and [4, 6] at row 2 of a tensor [8, 6]      2 common rows of 6 items = 1 copy of 12 items
#include "convert/jobs/box_moves.h"

#include <algorithm>

namespace mckpt::impl {
namespace {

// One dimension of what the boxes have in common, the innermost first: the number of steps, and the length of
// a step in the items of either box.
struct Axis {
  i64 count, from_stride, to_stride;
};

}  // namespace

void append_box_moves(const BoxView& from, const BoxView& to, i32 slot, std::vector<Move>& out) {
  std::vector<Axis> axes;
  i64 from_at = 0, to_at = 0, from_stride = 1, to_stride = 1;
  for (std::size_t d = from.offsets.size(); d-- > 0;) {
    i64 begin = std::max(from.offsets[d], to.offsets[d]);
    i64 end = std::min(from.offsets[d] + from.sizes[d], to.offsets[d] + to.sizes[d]);
    if (begin >= end) return;
    from_at += (begin - from.offsets[d]) * from_stride;
    to_at += (begin - to.offsets[d]) * to_stride;
    // Two dimensions are one where the outer one steps over exactly the inner one on both sides.
    if (!axes.empty() && axes.back().count * axes.back().from_stride == from_stride &&
        axes.back().count * axes.back().to_stride == to_stride)
      axes.back().count *= end - begin;
    else if (end - begin > 1 || axes.empty())
      axes.push_back({end - begin, from_stride, to_stride});
    from_stride *= from.sizes[d];
    to_stride *= to.sizes[d];
  }
  Move move;
  move.slot = slot;
  move.from = from_at, move.to = to_at, move.length = 1;
  std::size_t next = 0;
  if (!axes.empty() && axes[0].from_stride == 1 && axes[0].to_stride == 1) move.length = axes[next++].count;
  for (MoveLoop* loop : {&move.inner, &move.outer})
    if (next < axes.size()) *loop = {axes[next].from_stride, axes[next].to_stride, axes[next].count}, next++;
  // A move has two loops. Each further dimension repeats all moves so far, once for each of its steps.
  std::size_t first = out.size();
  out.push_back(move);
  for (; next < axes.size(); next++) {
    std::size_t end = out.size();
    for (i64 i = 1; i < axes[next].count; i++)
      for (std::size_t m = first; m < end; m++) {
        Move copy = out[m];
        copy.from += i * axes[next].from_stride;
        copy.to += i * axes[next].to_stride;
        out.push_back(copy);
      }
  }
}

}  // namespace mckpt::impl
