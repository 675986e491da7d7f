// The proof behind every plan: a set of runs visits each item of a tensor exactly once.
#pragma once

#include <optional>
#include <span>

#include "core/items/item_run.h"

namespace mckpt {

struct TilingFault {
  i64 item;   // the first at fault
  i64 times;  // 0: no run visits it; 2: more than one does
};

// Exact, and quick for walks of any size: rows that hold the same pattern are looked at once. Slots are not
// looked at. pre: each run passes check_run(run, items).
std::optional<TilingFault> tiling_fault(std::span<const ItemRun> runs, i64 items);

// The same for ranges of one order, such as the cuts of a flat buffer.
std::optional<TilingFault> tiling_fault(std::span<const ItemRange> ranges, i64 items);

}  // namespace mckpt
