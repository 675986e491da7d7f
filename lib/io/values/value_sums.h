// Sums over stretches of numbers, fast, and put together so that the result depends on the numbers alone.
#pragma once

#include <span>
#include <vector>

#include "io/values/element.h"

namespace mckpt::impl {

// Count, extremes, sum and squared deviations of finite numbers, and how many of them are zero. long double
// has room for the squares of all doubles, and digits for every integer of 64 bits.
struct ValueSums {
  i64 count = 0, zeros = 0;
  long double min = 0, max = 0;
  long double sum = 0, squares = 0;  // squares: the sum of (x - mean)^2

  long double mean() const { return sum / static_cast<long double>(count); }  // pre: count > 0
  void merge(const ValueSums& later);
};

// Of a stretch of whole numbers. pre: kind is not kCode.
ValueSums sum_numbers(ElementForm::Kind kind, std::span<const u8> bytes);

// Bins of equal width; the last one is closed.
struct Bins {
  // The width of all bins and its inverse are normal doubles after the scale, a power of two.
  double scale = 1, scaled_min = 0, per_width = 0;  // per_width: bins per unit of scaled value
  long double min = 0;
  std::vector<i64> counts;

  Bins(long double low, long double high, int bins);
  void add(double value, i64 times) { add_at((value * scale - scaled_min) * per_width, times); }
  void add_at(double at, i64 times) {
    std::size_t last = counts.size() - 1;
    counts[!(at > 0) ? 0 : at < static_cast<double>(last) ? static_cast<std::size_t>(at) : last] += times;
  }
  // Adds the finite numbers of a stretch. pre: kind is not kCode.
  void add_numbers(ElementForm::Kind kind, std::span<const u8> bytes);
};

// How often each code occurs, for the codes that do, in ascending order.
struct CodeCount {
  u32 code = 0;
  i64 count = 0;
};
using CodeCounts = std::vector<CodeCount>;

// Counts codes of at most 16 bits. One for each thread: its tables are kept from stretch to stretch.
class CodeCounter {
 public:
  void add(int number_bits, std::span<const u8> bytes);
  // What was added since the last call; to be called before the counters of 32 bits are full.
  CodeCounts take();
  bool nearly_full() const { return numbers_ >= i64{1} << 31; }

 private:
  void add16(std::span<const u8> bytes);

  // Two counters a code, taken in turns: equal neighbours would wait for each other.
  std::vector<u32> tables_;
  std::vector<u32> touched_;  // codes seen, while there are few numbers
  i64 numbers_ = 0;
};

CodeCounts merged(const CodeCounts& a, const CodeCounts& b);

}  // namespace mckpt::impl
