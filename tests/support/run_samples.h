// Small valid runs for exhaustive tests, and the naive reading of a run that everything is compared with.
#pragma once

#include <random>
#include <vector>

#include "core/items/item_run.h"

namespace mckpt::impl {

// The items in local order, by the definition.
inline std::vector<i64> items_in_order(const ItemRun& r) {
  std::vector<i64> items;
  for (i64 o = 0; o < r.outer.count; o++)
    for (i64 i = 0; i < r.inner.count; i++)
      for (i64 k = 0; k < r.length; k++)
        items.push_back(r.begin + o * r.outer.stride + i * r.inner.stride + k);
  return items;
}

// A random valid run of at most slot_items items: nested loops, either of which may be the larger, or absent.
inline ItemRun random_run(std::mt19937& random, i64 slot_items) {
  auto upto = [&](i64 n) { return std::uniform_int_distribution<i64>(0, n)(random); };
  for (;;) {
    ItemRun r;
    r.length = 1 + upto(3);
    Loop small{r.length + upto(2), 1 + upto(3)};
    Loop big{small.stride * (small.count - 1) + r.length + upto(3), 1 + upto(3)};
    if (small.count == 1) small = {};
    if (big.count == 1) big = {};
    bool turned = upto(1) == 1;
    r.inner = turned ? big : small;
    r.outer = turned ? small : big;
    i64 room = slot_items - r.end();
    if (room < 0) continue;
    r.begin = upto(room);
    return r;
  }
}

}  // namespace mckpt::impl
