// What the values of a tensor are like: extremes, mean, spread, zeros, NaN, infinities, and a histogram.
// Exact: types of at most 16 bits are counted value by value, and everything follows from the counts.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "core/base/int.h"
#include "io/values/finite.h"

namespace mckpt::impl {

class Store;

struct TensorStats {
  i64 numbers = 0;  // as element_form counts them: two for a complex element
  i64 finite = 0, zeros = 0;
  NonFinite non_finite;
  // Of the finite numbers; not set when there are none. long double holds every integer of 64 bits.
  long double min = 0, max = 0;
  double mean = 0, deviation = 0;  // the standard deviation of all of them (divided by n)
  // Equal bins from min to max, the last one closed. Empty when none was asked for, or no number is finite.
  std::vector<i64> histogram;
};

// The statistics of these tensors, in the order asked for. The result does not depend on the number of
// threads. `progress` receives the number of bytes that are read, from any thread.
std::vector<TensorStats> tensor_stats(const Store& store, std::span<const i64> tensors, int bins, int threads,
                                      const std::function<void(i64 bytes)>& progress);

}  // namespace mckpt::impl
