// Copies the items of a move in memory. All copies of tensor data go through here, so what the plans prove
// about moves holds for the bytes.
//
// The memory is a window: a part of the source and a part of the destination that are held at the moment.
// `first` says which item is at the front of each:
//
//   move copy [100+4] -> [8+4], source window from item 96, destination window from item 0
//   items 100 to 103 are at position 4 of the source window and go to position 8 of the other
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

// pre: every item of either side is in the memory given; the two do not overlap; item_bytes is 1, 2, 4, 8
// or 16.
void apply_move(const Move& move, i64 item_bytes, ItemsIn from, ItemsOut to);

// The first item of the destination, in the order of the move, that is not the one of the source; -1: all
// are. The same pre.
i64 first_unlike(const Move& move, i64 item_bytes, ItemsIn from, ItemsIn to);

}  // namespace mckpt::impl
