// Distances of tensors: against sums that are written out, and against a naive loop for every type.
#include "io/values/distance.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "core/base/text.h"
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

TEST(Distance, SquaresBeyondADoubleAreSummed) {
  auto between = [](const std::vector<double>& a, const std::vector<double>& b) {
    return DistanceMeter(DType::kF64).between(bytes(a), bytes(b), {});
  };
  ValueDistance large = between({1.7e308, 1}, {-1.7e308, 1});
  EXPECT_EQ(*large.relative_l2(), 2);
  EXPECT_EQ(*large.cosine(), -1);
  ValueDistance small = between({1e-300, 1e-310}, {1.1e-300, 1e-310});
  EXPECT_NEAR(*small.relative_l2(), 0.1 / 1.1, 1e-12);
  EXPECT_NEAR(*small.cosine(), 1, 1e-12);
  ValueDistance near_one = between({1, 1e-200}, {1, 3e-200});  // the squares of 2e-200 alone are too small
  EXPECT_NEAR(*near_one.relative_l2() / 2e-200, 1, 1e-12);
}

TEST(Distance, ZerosOfBothSignsAreNeighbours) {
  std::vector<float> a{-0.0f, -std::numeric_limits<float>::denorm_min()},
      b{0.0f, std::numeric_limits<float>::denorm_min()};
  ValueDistance d = DistanceMeter(DType::kF32).between(bytes(a), bytes(b), {});
  EXPECT_EQ(d.differing, 2);
  EXPECT_EQ(d.beyond, 1);
  EXPECT_EQ(d.most_ulps, 2);
}

// Number by number, but for the steps between floats.
ValueDistance naive(DType dtype, const std::vector<u8>& a, const std::vector<u8>& b,
                    const Tolerance& within) {
  ValueDistance out;
  std::size_t bytes = static_cast<std::size_t>(element_form(dtype).number_bits / 8);
  for (std::size_t n = 0; n < a.size() / bytes; n++) {
    bool equal = std::memcmp(&a[n * bytes], &b[n * bytes], bytes) == 0;
    double x = number_at(dtype, a.data(), static_cast<i64>(n)),
           y = number_at(dtype, b.data(), static_cast<i64>(n));
    out.differing += !equal;
    if (!std::isfinite(x) || !std::isfinite(y)) {
      out.not_finite += !equal && !(std::isnan(x) && std::isnan(y));
      continue;
    }
    const long double of_a = x, of_b = y;
    out.squares_a += of_a * of_a, out.squares_b += of_b * of_b, out.products += of_a * of_b,
        out.squares_apart += (of_a - of_b) * (of_a - of_b);
    if (equal) continue;
    out.largest = std::max(out.largest.value_or(0), std::fabs(x - y));
    out.beyond += std::fabs(x - y) > std::fma(within.relative, std::fabs(y), within.absolute);
  }
  out.beyond += out.not_finite;
  return out;
}

void expect_like(const ValueDistance& found, const ValueDistance& expected) {
  EXPECT_EQ(found.differing, expected.differing);
  EXPECT_EQ(found.beyond, expected.beyond);
  EXPECT_EQ(found.not_finite, expected.not_finite);
  EXPECT_EQ(found.largest, expected.largest);
  auto near = [](long double one, long double other, long double by) {
    EXPECT_LE(std::fabs(one - other), 1e-12L * std::fabs(by)) << other;
  };
  near(found.squares_a, expected.squares_a, expected.squares_a);
  near(found.squares_b, expected.squares_b, expected.squares_b);
  near(found.squares_apart, expected.squares_apart, expected.squares_apart);
  // Products of both signs may cancel out.
  near(found.products, expected.products, std::sqrt(expected.squares_a) * std::sqrt(expected.squares_b));
}

// Types, lengths and shares of equal numbers of every kind, merged from two parts; with and without vectors,
// which count the same steps between floats.
TEST(Distance, IsThatOfANaiveLoopForEveryType) {
  std::mt19937_64 random(3);
  int measured = 0;
  for (const DTypeInfo& info : all_dtypes()) {
    DistanceMeter plain(info.dtype, Processor::kAny), best(info.dtype);
    if (!plain.measures()) continue;
    measured++;
    i64 bytes_each = info.bits / 8;
    for (i64 items : {1, 7, 511, 512, 1300, 9001}) {
      SCOPED_TRACE(cat(info.name, " ", items));
      std::vector<u8> a(static_cast<std::size_t>(items * bytes_each)), b;
      for (u8& byte : a) byte = static_cast<u8>(random());
      b = a;
      for (u8& byte : b)
        if (random() % 16 == 0) byte = static_cast<u8>(random());
      std::span<const u8> of_a(a), of_b(b);
      std::size_t half = static_cast<std::size_t>(items / 2 * bytes_each);
      for (Tolerance within : {Tolerance{}, Tolerance{.absolute = 0.01, .relative = 0.1}}) {
        ValueDistance expected = naive(info.dtype, a, b, within);
        for (const DistanceMeter* meter : {&plain, &best}) {
          ValueDistance d = meter->between(of_a.first(half), of_b.first(half), within);
          d.merge(meter->between(of_a.subspan(half), of_b.subspan(half), within));
          expect_like(d, expected);
        }
      }
      for (Tolerance within : {Tolerance{.ulps = 1}, Tolerance{.relative = 0.001, .ulps = 100},
                               Tolerance{.ulps = i64{1} << 40}}) {
        ValueDistance one = plain.between(a, b, within), other = best.between(a, b, within);
        EXPECT_EQ(one.beyond, other.beyond);
        EXPECT_EQ(one.most_ulps, other.most_ulps);
      }
    }
  }
  EXPECT_GE(measured, 12);
}

}  // namespace distance_test
}  // namespace mckpt::impl
