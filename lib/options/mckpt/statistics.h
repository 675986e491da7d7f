// Statistics of values.
#pragma once

#include <cstdint>

namespace mckpt {

// Statistics of one tensor's numbers. A complex element is two numbers.
struct Statistics {
  std::int64_t numbers = 0, finite = 0, zeros = 0, nan = 0, infinite = 0;
  // Extremes, mean, deviation and norm (l2) are about the finite numbers. Where `finite` is 0 they are NaN
  // here, null in JSON and None in Python. Extremes of integers beyond 2^53 are rounded.
  double min = 0, max = 0, mean = 0, deviation = 0, l2 = 0;
};

}  // namespace mckpt
