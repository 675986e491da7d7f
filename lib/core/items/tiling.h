// The proof of every plan: checks that a set of runs visits each item of a tensor exactly once.
//
//   8 items, runs [0+2 x2/4] and [2+2 x2/4]      0 1 . . 4 5 . .  and  . . 2 3 . . 6 7      no fault
//   8 items, runs [0+2 x2/4] and [2+4]           item 4 twice                               {item 4, times 2}
//   8 items, run [0+6]                           item 6 missing                             {item 6, times 0}
//
// The check computes with the numbers of the runs; its cost depends on the number of runs and of different
// rows, not on the number of items.
#pragma once

#include <optional>
#include <span>

#include "core/base/int.h"

namespace mckpt::impl {

struct ItemRange;
struct ItemRun;

// The first item at fault, in ascending order.
struct TilingFault {
  i64 item;   // the first item that is wrong
  i64 times;  // 0: no run visits it; 2: more than one run does
};

// Exact, and fast for walks of any size: rows with the same pattern are checked once. Slots are ignored.
// pre: each run passes check_run(run, items).
std::optional<TilingFault> tiling_fault(std::span<const ItemRun> runs, i64 items);

// Checks ranges of one order, such as the cuts of a flat buffer.
std::optional<TilingFault> tiling_fault(std::span<const ItemRange> ranges, i64 items);

}  // namespace mckpt::impl
