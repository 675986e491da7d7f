// Two boxes of one tensor, each stored row-major by itself: the moves that carry what they have in common
// from the items of one to the items of the other.
#pragma once

#include <span>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

struct Move;

struct BoxView {
  std::span<const i64> offsets, sizes;
};

// Appends them. pre: both lie in one tensor and have as many dimensions.
void append_box_moves(const BoxView& from, const BoxView& to, i32 slot, std::vector<Move>& out);

}  // namespace mckpt::impl
