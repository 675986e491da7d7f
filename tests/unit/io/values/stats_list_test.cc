// Statistics come back from a StatsList as they went in, in any block of it.
#include "io/values/stats_list.h"

#include <gtest/gtest.h>

#include "io/values/tensor_stats.h"
#include "tests/support/equal_stats.h"

namespace mckpt::impl {
namespace stats_list_test {

// Numbers of many bytes, an integer beyond a double, and as many bins as i says; every third has no finite number.
TensorStats made(i64 i) {
  TensorStats s;
  s.numbers = i * 1'000'003;
  if (i % 2) s.non_finite.nans = i, s.non_finite.first_nan = i - 1;
  if (i % 5 == 0) s.non_finite.infinities = 1 + i, s.non_finite.first_infinity = i64{1} << 62;
  if (i % 3 == 0) return s;
  s.finite = i64{1} << (i % 63), s.zeros = i;
  s.min = -9007199254740993.0L - static_cast<long double>(i), s.max = 18446744073709551615.0L;
  s.mean = 1.0 / static_cast<double>(i), s.deviation = 1e-300,
  s.sum_of_squares = 1e4000L / static_cast<long double>(i);
  for (i64 b = 0; b < i % 20; b++) s.histogram.push_back(b * b * i);
  return s;
}

TEST(StatsList, GivesBackWhatWasAdded) {
  constexpr i64 kCount = 10'000;
  StatsList list;
  for (i64 i = 0; i < kCount; i++) list.add(made(i));
  for (i64 i = 0; i < kCount; i++) {
    SCOPED_TRACE(i);
    expect_equal(list[static_cast<std::size_t>(i)], made(i));
  }
}

}  // namespace stats_list_test
}  // namespace mckpt::impl
