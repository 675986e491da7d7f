// Distances of tensors: against sums that are written out, and against a naive loop for every type.
#include "io/values/distance.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "io/values/element.h"

namespace mckpt::impl {
namespace distance_test {

template <typename T>
std::span<const u8> bytes(const std::vector<T>& v) {
  return {reinterpret_cast<const u8*>(v.data()), v.size() * sizeof(T)};
}

TEST(Distance, IsThatOfThePicture) {
  std::vector<float> a{1, 2, 3}, b{1, 2, 4};
  ValueDistance d = DistanceMeter(DType::kF32).between(bytes(a), bytes(b), {});
  EXPECT_EQ(d.differing, 1);
  EXPECT_EQ(d.beyond, 1);
  EXPECT_EQ(d.largest, 1.0);
  EXPECT_EQ(d.most_ulps, 1 << 22);  // from 3 to 4
  EXPECT_DOUBLE_EQ(*d.relative_l2(), 1 / std::sqrt(21.0));
  EXPECT_DOUBLE_EQ(*d.cosine(), 17 / std::sqrt(14.0 * 21));
}

TEST(Distance, CountsWhatIsBeyondTheTolerance) {
  std::vector<float> b{1, 1, 1, 1, 0};
  std::vector<float> a{1.5f, 1.25f, std::nextafter(1.0f, 2.0f), 1, 1e-6f};
  auto beyond = [&](Tolerance t) { return DistanceMeter(DType::kF32).between(bytes(a), bytes(b), t).beyond; };
  EXPECT_EQ(beyond({}), 4);
  EXPECT_EQ(beyond({.relative = 0.25}), 2);
  EXPECT_EQ(beyond({.absolute = 0.25}), 1);
  EXPECT_EQ(beyond({.absolute = 1e-5, .relative = 0.5}), 0);
  EXPECT_EQ(beyond({.ulps = 1}), 3);
}

TEST(Distance, NumbersThatAreNotFiniteAreInNoSum) {
  float inf = INFINITY, nan = NAN;
  std::vector<float> a{1, inf, nan, nan, inf, 2}, b{1, 3, 4, -nan, inf, 5};
  ValueDistance d = DistanceMeter(DType::kF32).between(bytes(a), bytes(b), {.absolute = 100});
  EXPECT_EQ(d.differing, 4);
  EXPECT_EQ(d.beyond, 2);  // the infinity and the NaN beside numbers; not two NaN of other bits
  EXPECT_EQ(d.largest, 3.0);
  EXPECT_EQ(d.squares_a, 1 + 4);
  EXPECT_EQ(d.squares_b, 1 + 25);
  EXPECT_EQ(d.squares_apart, 9);
}

TEST(Distance, ZerosOfBothSignsAreNeighbours) {
  std::vector<float> a{-0.0f, -std::numeric_limits<float>::denorm_min()}, b{0.0f, std::numeric_limits<float>::denorm_min()};
  ValueDistance d = DistanceMeter(DType::kF32).between(bytes(a), bytes(b), {});
  EXPECT_EQ(d.differing, 2);
  EXPECT_EQ(d.beyond, 1);
  EXPECT_EQ(d.most_ulps, 2);
}

// Types, lengths and shares of equal numbers of every kind, merged from two parts.
TEST(Distance, IsThatOfANaiveLoopForEveryType) {
  std::mt19937_64 random(3);
  int measured = 0;
  for (const DTypeInfo& info : all_dtypes()) {
    DistanceMeter meter(info.dtype);
    if (!meter.measures()) continue;
    measured++;
    ElementForm form = element_form(info.dtype);
    i64 bytes_each = info.bits / 8;
    for (i64 items : {1, 7, 511, 512, 1300}) {
      std::vector<u8> a(static_cast<std::size_t>(items * bytes_each)), b;
      for (u8& byte : a) byte = static_cast<u8>(random());
      b = a;
      for (u8& byte : b)
        if (random() % 16 == 0) byte = static_cast<u8>(random());
      Tolerance within{.absolute = 0.01, .relative = 0.1};
      i64 half = items / 2 * bytes_each;
      auto part = [&](const std::vector<u8>& of, i64 from, i64 to) {
        return std::span(of).subspan(static_cast<std::size_t>(from), static_cast<std::size_t>(to - from));
      };
      i64 all = items * bytes_each;
      ValueDistance d = meter.between(part(a, 0, half), part(b, 0, half), within);
      d.merge(meter.between(part(a, half, all), part(b, half, all), within));
      i64 differing = 0, beyond = 0;
      double largest = -1;
      for (i64 n = 0; n < items * form.per_element; n++) {
        i64 number_bytes = form.number_bits / 8;
        if (std::memcmp(&a[static_cast<std::size_t>(n * number_bytes)], &b[static_cast<std::size_t>(n * number_bytes)], static_cast<std::size_t>(number_bytes)) == 0)
          continue;
        differing++;
        double x = number_at(info.dtype, a.data(), n), y = number_at(info.dtype, b.data(), n);
        if (!std::isfinite(x) || !std::isfinite(y)) {
          beyond += !(std::isnan(x) && std::isnan(y));
          continue;
        }
        largest = std::max(largest, std::fabs(x - y));
        beyond += std::fabs(x - y) > 0.01 + 0.1 * std::fabs(y);
      }
      EXPECT_EQ(d.differing, differing) << info.name << " " << items;
      EXPECT_EQ(d.beyond, beyond) << info.name << " " << items;
      EXPECT_EQ(d.largest.value_or(-1), largest) << info.name << " " << items;
    }
  }
  EXPECT_GE(measured, 12);
}

}  // namespace distance_test
}  // namespace mckpt::impl
