// Carries out a move in memory: the one place that copies items.
#pragma once

#include "core/items/move.h"

namespace mckpt {

// Memory that holds consecutive items of one side of a move, beginning with item `first`.
struct ItemsIn {
  const u8* data = nullptr;
  i64 first = 0;
};
struct ItemsOut {
  u8* data = nullptr;
  i64 first = 0;
};

// pre: every item of either side lies in the memory given; the two do not overlap; item_bytes is 1, 2, 4, 8
// or 16. A kAdd move is copied: whoever knows the type adds.
void apply_move(const Move& move, i64 item_bytes, ItemsIn from, ItemsOut to);

}  // namespace mckpt
