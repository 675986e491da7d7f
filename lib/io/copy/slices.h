// How a task that is too large for one step is divided: into slices whose destination windows fit a budget
// and whose sources are still read once.
//
//   long source runs (rows, heads)     windows of each destination in turn; the sources of one are together
//   strips (row-parallel import)       ranges of source rows; each feeds a window of every destination
//   transposes                         whole destinations, or experts of one, that share their source bytes
#pragma once

#include <vector>

#include "core/items/item_run.h"

namespace mckpt::impl {

class Plan;

struct Window {
  i32 destination = 0;
  ItemRange items;
};
using Slice = std::vector<Window>;

// The windows of all slices tile every destination; those of one destination come in ascending order. A
// window is larger than `budget_bytes` only where a destination is written in no order that its source has;
// then it has at most `most_bytes`, and parts of the source are read again for each window.
std::vector<Slice> slices_of(const Plan& plan, i64 budget_bytes, i64 most_bytes);

}  // namespace mckpt::impl
