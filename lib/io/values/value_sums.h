// Sums over stretches of numbers: the arithmetic of tensor_stats. Three tools: ValueSums (count, extremes,
// mean and spread of numbers of 32 and 64 bits), Bins (a histogram), CodeCounter (how often each code of a
// type of at most 16 bits occurs).
//
// Stretches are summed apart and merged; a result depends on the numbers and their order alone, not on
// threads. Example: the numbers 1 2 3 | 4 5 6 as two stretches: {count 3, sum 6, squared deviations 2} and
// {3, 15, 2} merge to {6, 21, 17.5}: 2 + 2 + (5 - 2)^2 * 3 * 3 / 6.
#pragma once

#include <span>
#include <vector>

#include "io/values/element.h"

namespace mckpt::impl {

// Count, extremes, sum, squared deviations and squares of finite numbers, and how many of them are zero. On
// x86-64 a long double has room for the squares of all doubles, and digits for every integer of 64 bits.
struct ValueSums {
  i64 count = 0, zeros = 0;
  long double min = 0, max = 0;
  long double sum = 0;
  long double squared_deviations = 0;  // the sum of (x - mean)^2
  // The sum of x^2. Its terms have one sign, so that any order of summing them gives 13 digits or more.
  long double sum_of_squares = 0;

  long double mean() const { return sum / static_cast<long double>(count); }  // pre: count > 0
  void merge(const ValueSums& later);  // adds the numbers of a later stretch
};

// The sums of a stretch of whole numbers; numbers that are not finite are left out. pre: kind is not kCode.
ValueSums sum_numbers(ElementForm::Kind kind, std::span<const u8> bytes);

// A histogram: bins of equal width from `low` to `high`, the last one closed. Numbers outside count in the
// first or the last bin.
struct Bins {
  // The width of all bins and its inverse are normal doubles after the scale, a power of two.
  double scale = 1, scaled_min = 0, per_width = 0;  // per_width: bins per unit of scaled value
  long double min = 0;
  std::vector<i64> counts;

  Bins(long double low, long double high, int bins);
  void add(double value, i64 times) { add_at((value * scale - scaled_min) * per_width, times); }
  void add_at(double at, i64 times) {  // at: 2.5 is the middle of bin 2
    std::size_t last = counts.size() - 1;
    counts[!(at > 0) ? 0 : at < static_cast<double>(last) ? static_cast<std::size_t>(at) : last] += times;
  }
  // Adds the finite numbers of a stretch. pre: kind is not kCode.
  void add_numbers(ElementForm::Kind kind, std::span<const u8> bytes);
};

// How often a code occurs. CodeCounts has the codes that do occur, in ascending order.
struct CodeCount {
  u32 code = 0;
  i64 count = 0;
};
using CodeCounts = std::vector<CodeCount>;

// Counts codes of at most 16 bits. One for each thread: its tables are kept from stretch to stretch.
class CodeCounter {
 public:
  // Counts the codes of a stretch of whole numbers. pre: number_bits (4, 6, 8 or 16) is the same in all calls
  // between two calls of take().
  void add(int number_bits, std::span<const u8> bytes);
  // The counts since the last call. To be called when nearly_full(): counters have 32 bits.
  CodeCounts take();
  bool nearly_full() const { return numbers_ >= i64{1} << 31; }

 private:
  void add16(std::span<const u8> bytes);

  // Two counters for each code, used in turns: with one, equal neighbours would wait for each other.
  std::vector<u32> tables_;
  std::vector<u32> touched_;  // codes seen, while there are few numbers
  i64 numbers_ = 0;
};

// The sums of two lists of counts.
CodeCounts merged(const CodeCounts& a, const CodeCounts& b);

}  // namespace mckpt::impl
