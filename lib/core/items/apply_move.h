// Copies the items of a move in memory. All copies of tensor data go through here.
#pragma once

#include "core/base/int.h"

namespace mckpt::impl {

struct Move;

// Memory with consecutive items of one side of a move; the first one is item `first`.
struct ItemsIn {
  const u8* data = nullptr;
  i64 first = 0;
};
struct ItemsOut {
  u8* data = nullptr;
  i64 first = 0;
};

// pre: every item of either side lies in the memory given; the two do not overlap; item_bytes is 1, 2, 4, 8
// or 16. A kAdd move is copied; the caller, who knows the data type, adds the constant.
void apply_move(const Move& move, i64 item_bytes, ItemsIn from, ItemsOut to);

}  // namespace mckpt::impl
