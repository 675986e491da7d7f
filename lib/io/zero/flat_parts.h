// Where parameters are in the flat parts that the ranks of ZeRO store. A part is one 1-D tensor; parts that
// follow each other are one long vector, from which a parameter takes a range:
//
//   ZeRO 1, 2      parts of one group, rank after rank           parameters back to back, padding at the end
//                    rank 0           rank 1
//                   |aaaa bbb         |bbbb cc ..|               b: items 0..2 at 4 of rank 0, 3..6 at 0 of rank 1
//
//   ZeRO 3         parts of one rank, group after group          of each parameter chunk_part() (core/items/placement.h)
//                    rank 0 |aa bbbb c|    rank 1 |aa bbb. c|    b has 7 items: 0..3 on rank 0, 4..6 on rank 1
#pragma once

#include <vector>

#include "core/base/int.h"
#include "core/items/item_run.h"

namespace mckpt::impl {

// Items of a parameter that are together in one part.
struct ZeroStretch {
  i64 part = -1;
  i64 begin = 0;      // of the first of them in the part
  ItemRange items{};  // of the parameter
  friend bool operator==(const ZeroStretch&, const ZeroStretch&) = default;
};

// One vector of parts. Parts that are missing leave gaps, which no stretch is in.
class FlatParts {
 public:
  // Adds a part that begins at item `begin` of the vector. pre: parts are added in their order, and none
  // begins before the end of the one before it.
  void add(i64 part, i64 begin, i64 items);
  i64 end() const { return parts_.empty() ? 0 : parts_.back().begin + parts_.back().items; }

  // Appends the stretches of `items` of a parameter; the first of them is item `begin` of the vector. Items
  // in no part are left out.
  void cut(i64 begin, ItemRange items, std::vector<ZeroStretch>& out) const;

 private:
  struct Part {
    i64 part, begin, items;
  };
  std::vector<Part> parts_;
};

}  // namespace mckpt::impl
