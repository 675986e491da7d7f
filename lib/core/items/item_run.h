// ItemRun: an arithmetic walk over the items of one source tensor (its "slot"). Split rules, cuts and plans
// are all computed on runs.
//
//   for o in [0, outer.count)            items begin + o*outer.stride + i*inner.stride + k
//     for i in [0, inner.count)          in this order, which is the local order of the run's owner
//       for k in [0, length)
//
//   rows [a, b) of an R x C matrix       begin a*C, length (b-a)*C
//   columns [a, b)                       begin a, length b-a, inner {C, R}
//   its transpose                        begin 0, length 1, inner {C, R}, outer {1, C}
//
// A valid run visits no item twice because its loops nest: sorted by stride, the whole of a smaller loop fits
// into one step of the next larger one.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

// A loop of a walk: `count` steps, `stride` items apart. A loop of one step does not count as a loop.
struct Loop {
  i64 stride = 0;
  i64 count = 1;

  friend bool operator==(const Loop&, const Loop&) = default;
};

// Half open: [begin, end). All empty ranges are equivalent.
struct ItemRange {
  i64 begin = 0;
  i64 end = 0;

  i64 items() const { return end - begin; }
  bool empty() const { return begin >= end; }
  friend bool operator==(const ItemRange&, const ItemRange&) = default;
};

ItemRange intersection(ItemRange a, ItemRange b);  // {0, 0} when they do not meet

// The walk itself; the picture at the top of this file says which items it visits. Six numbers describe a
// part of a tensor of any size, so rules and plans take no memory that grows with the tensor. The default is
// empty.
struct ItemRun {
  i32 slot = 0;
  i64 begin = 0;
  i64 length = 0;
  Loop inner = {};
  Loop outer = {};

  i64 items() const { return length * inner.count * outer.count; }
  // The item at a position of the local order. pre: 0 <= local < items().
  i64 at(i64 local) const;
  // One past the largest item; begin when there are none.
  i64 end() const;

  friend bool operator==(const ItemRun&, const ItemRun&) = default;
};

// pre for these functions: the run is valid and its products fit 63 bits; check_run() checks both.

// Throws kBadRun if a count, length or stride is negative, if loops do not nest, or if an item is outside
// [0, slot_items).
void check_run(const ItemRun& run, i64 slot_items);

// The same walk with as few and as short loops as possible; {begin, 0} for an empty one: [0+4 x3/4] becomes
// [0+12].
ItemRun canonical(const ItemRun& run);

// Appends the part of the run at local positions [range.begin, range.end): at most five runs.
// pre: 0 <= begin <= end <= items().
void cut(const ItemRun& run, ItemRange range, std::vector<ItemRun>& out);

// Cuts a list of runs that follow each other in one local order.
std::vector<ItemRun> cut(std::span<const ItemRun> runs, ItemRange range);

// The sum of their items.
i64 items_of(std::span<const ItemRun> runs);

// "[12+4 x3/10 x2/100]": begin + length, then inner and outer loop as count/stride. A slot other than 0 is
// printed first: "1[0+8]".
std::string to_string(const ItemRun& run);
std::string to_string(std::span<const ItemRun> runs);

}  // namespace mckpt::impl
