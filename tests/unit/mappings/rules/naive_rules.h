// The rules once more, the way the formulas read: one loop per index, one item at a time, heads and experts
// one by one. Slow, plain, and written without a look at the runs that it is there to check.
#pragma once

#include "tests/unit/mappings/rules/rule_cases.h"

namespace mckpt::impl {

// Item i of source s is called s * kSlotItems + i, padding is called -1, and the copy of an item -2 less its
// name: no two items share a name.
inline constexpr i64 kSlotItems = 1'000'000'000;

struct NaiveHolding {
  Shape shape;
  int partition_dim = 0;
  std::vector<i64> items;  // in local order
  float addend = 0;
  i64 copies = 1;
};

NaiveHolding naive_hold(const RuleCase& c, i64 part, i64 expert);

}  // namespace mckpt::impl
