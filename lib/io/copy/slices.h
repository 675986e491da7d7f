// How a task that is too large for one step is divided: into slices, each a set of windows of the task's
// destinations, so that the windows of a slice fit a budget and the sources are still read once. Which way is
// possible depends on how the moves walk over the source:
//
//   long runs (rows, heads)         windows of one destination after the other; what a window needs of the
//                                   source is a few long stretches
//   strips (columns of a matrix     ranges of source rows; each feeds one window of every destination
//   go to different destinations)
//   anything else (a transpose)     whole destinations, or experts of one, that share their source bytes
//
// Example of strips: a source of 8 rows of 6 items, whose columns 0..2 go to destination 0 and columns 3..5
// to destination 1. Two rows a slice: {dest. 0: items 0..5, dest. 1: items 0..5}, {0: 6..11, 1: 6..11}, and
// so on. Windows of one destination would read each row twice.
#pragma once

#include <vector>

#include "core/items/item_run.h"

namespace mckpt::impl {

class Plan;

// A range of the items of one destination of the plan.
struct Window {
  i32 destination = 0;
  ItemRange items;
};
using Slice = std::vector<Window>;

// The windows of all slices tile every destination; the windows of one destination come in ascending order. A
// window is larger than `budget_bytes` only if a destination is written in an order that its source does not
// have (a transpose); then the window has at most `most_bytes`. Where that still cuts a destination, parts of
// the source are read again for each window. pre: the plan is finished.
std::vector<Slice> slices_of(const Plan& plan, i64 budget_bytes, i64 most_bytes);

}  // namespace mckpt::impl
