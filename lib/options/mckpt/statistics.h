// Statistics of values.
#pragma once

#include <cstdint>

namespace mckpt {

// Statistics of one tensor's numbers. A complex element is two numbers.
struct Statistics {
  std::int64_t numbers = 0, finite = 0, zeros = 0, nan = 0, infinite = 0;
  // Of the finite numbers; l2: their norm. NaN where `finite` is 0, for which JSON has null and Python None. Extremes
  // of integers beyond 2^53 are rounded.
  double min = 0, max = 0, mean = 0, deviation = 0, l2 = 0;
};

}  // namespace mckpt
