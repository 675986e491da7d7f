// The values of a tensor in short: extremes, mean, spread, zeros, NaN, infinities, and a histogram.
// `stats` shows them.
//
// Values of at most 16 bits are counted code by code (a bfloat16 tensor of any size has at most 65,536
// different values), and everything follows from the counts, in one pass over the data. Other values are
// summed, and their histogram takes a second pass, because its bins depend on the extremes. Either way the
// result is the same for any number of threads.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "core/base/int.h"
#include "core/items/dtype.h"
#include "io/values/finite.h"

namespace mckpt::impl {

class Store;

// The statistics of one tensor.
struct TensorStats {
  i64 numbers = 0;  // as element_form counts them: two for a complex element
  i64 finite = 0, zeros = 0;
  NonFinite non_finite;
  // Extremes of the finite numbers; not set when there are none. A long double can be any 64-bit integer.
  long double min = 0, max = 0;
  double mean = 0, deviation = 0;  // the standard deviation of all of them (divided by n)
  long double sum_of_squares = 0;  // the square of the L2 norm
  // Counts in bins of equal width from min to max, the last one closed. Empty if no bins were asked for, or
  // if no number is finite.
  std::vector<i64> histogram;
};

// The L2 norm of the finite numbers. It depends on how a tensor is cut into chunks by less than 1e-13 of it,
// and not at all if its values have 16 bits or fewer.
double l2_norm(const TensorStats& stats);
// The L2 norm of several tensors, such as all of a model, from the sum of their sums of squares.
double l2_norm(long double sum_of_squares);

// The bytes that the two functions below tell `progress` of: a histogram of numbers takes a second pass.
i64 stats_bytes(const Store& store, std::span<const i64> tensors, int bins);

// The statistics of tensors, in the order of `tensors`. `bins`: of the histogram; 0: none. `progress` is
// called with numbers of bytes that were read, or need not be read a second time, from any thread. Throws
// what TensorReader::read() throws.
std::vector<TensorStats> tensor_stats(const Store& store, std::span<const i64> tensors, int bins, int threads,
                                      const std::function<void(i64 bytes)>& progress);

// The same for a list of any length in little memory: `take` gets the statistics one by one, in that order.
void each_tensor_stats(const Store& store, std::span<const i64> tensors, int bins, int threads,
                       const std::function<void(i64 bytes)>& progress,
                       const std::function<void(const TensorStats&)>& take);

// The statistics of numbers in memory, without a histogram, such as the numbers of a slice. pre: `bytes` are
// whole numbers.
TensorStats stats_of(DType dtype, std::span<const u8> bytes);

}  // namespace mckpt::impl
