// The proof of every plan: checks that a set of runs visits each item of a tensor exactly once.
#pragma once

#include <optional>
#include <span>

#include "core/base/int.h"

namespace mckpt::impl {

struct ItemRange;
struct ItemRun;

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
