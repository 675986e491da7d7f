// Whether runs that copy items of one tensor a second time have each of its items equally often: a projection of keys that is
// the values too once, the one row of a gate for every other row of its head.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "core/items/item_run.h"

namespace mckpt::impl {

// pre: each run passes check_run(run, items).
inline bool are_even(std::span<const ItemRun> runs, i64 items) {
  if (runs.empty()) return true;
  // How many runs begin at an item, less those that ended there.
  std::vector<i64> change(static_cast<std::size_t>(items) + 1);
  for (const ItemRun& run : runs)
    for (i64 o = 0; o < run.outer.count; o++)
      for (i64 i = 0; i < run.inner.count; i++) {
        const i64 first = run.begin + o * run.outer.stride + i * run.inner.stride;
        change[static_cast<std::size_t>(first)]++, change[static_cast<std::size_t>(first + run.length)]--;
      }
  return std::all_of(change.begin() + 1, change.end() - 1, [](i64 n) { return n == 0; });
}

}  // namespace mckpt::impl
