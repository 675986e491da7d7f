// Compares the statistics of a tensor with those that it must have, field by field. The loudest value is left out: it is
// for `verify`, and lists of statistics do not keep it.
#pragma once

#include <gtest/gtest.h>

#include "io/values/tensor_stats.h"

namespace mckpt::impl {

inline void expect_equal(const TensorStats& found, const TensorStats& expected) {
  EXPECT_EQ(found.numbers, expected.numbers);
  EXPECT_EQ(found.finite, expected.finite);
  EXPECT_EQ(found.zeros, expected.zeros);
  EXPECT_EQ(found.non_finite.nans, expected.non_finite.nans);
  EXPECT_EQ(found.non_finite.infinities, expected.non_finite.infinities);
  EXPECT_EQ(found.non_finite.first_nan, expected.non_finite.first_nan);
  EXPECT_EQ(found.non_finite.first_infinity, expected.non_finite.first_infinity);
  EXPECT_EQ(found.min, expected.min);
  EXPECT_EQ(found.max, expected.max);
  EXPECT_EQ(found.mean, expected.mean);
  EXPECT_EQ(found.deviation, expected.deviation);
  EXPECT_EQ(found.sum_of_squares, expected.sum_of_squares);
  EXPECT_EQ(found.histogram, expected.histogram);
}

}  // namespace mckpt::impl
