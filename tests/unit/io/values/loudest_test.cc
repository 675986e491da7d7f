#include "io/values/loudest.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "core/items/dtype.h"
#include "io/values/element.h"
#include "io/values/finite.h"

namespace mckpt::impl {
namespace {

std::vector<u8> bytes_of(const std::vector<float>& values) {
  std::vector<u8> bytes(values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

NonFinite scanned(const std::vector<float>& values) {
  NonFinite found;
  scan_non_finite(DType::kF32, bytes_of(values), 0, found);
  return found;
}

std::vector<float> weights(std::size_t count) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal(0, 0.02F);
  std::vector<float> out(count);
  for (float& v : out) v = normal(random);
  return out;
}

// The largest magnitude among random codes of every type, also where NaN and infinities are among them.
TEST(Loudest, IsTheLargestFiniteValue) {
  std::mt19937_64 random(11);
  for (const DTypeInfo& info : all_dtypes()) {
    if (!has_wide_exponents(info.dtype)) continue;
    const ElementForm form = element_form(info.dtype);
    for (std::size_t size : {0u, 16u, 8192u, 80000u}) {
      std::vector<u8> bytes(size);
      for (u8& b : bytes) b = static_cast<u8>(random());
      double largest = 0;
      for (i64 i = 0; i < static_cast<i64>(size) * 8 / form.number_bits; i++)
        if (double v = std::fabs(number_at(info.dtype, bytes.data(), i)); std::isfinite(v))
          largest = std::max(largest, v);
      NonFinite found;
      scan_non_finite(info.dtype, bytes, 0, found);
      u8 code[8];
      std::memcpy(code, &found.loudest.code, 8);
      EXPECT_EQ(number_at(info.dtype, code, 0), largest) << info.name;
    }
  }
}

TEST(Loudest, OfZerosHasNoBits) {
  EXPECT_EQ(scanned({0, -0.0F, 0}).loudest.code, 0u);
  EXPECT_NE(scanned({0, 1e-40F}).loudest.code, 0u);
  NonFinite integers;
  scan_non_finite(DType::kI32, std::vector<u8>(64), 0, integers);
  EXPECT_EQ(integers.loudest.code, 0u);
  scan_non_finite(DType::kI32, std::vector<u8>{0, 0, 1, 0}, 16, integers);
  EXPECT_NE(integers.loudest.code, 0u);
}

TEST(Loudest, StandsApartOfOtherValues) {
  std::vector<float> values = weights(10'000);
  EXPECT_LT(scanned(values).loudest.at, 0);  // not large: not looked at
  values[9'000] = 300;
  Loudest one = scanned(values).loudest;
  EXPECT_EQ(one.at, 9'000);
  EXPECT_EQ(one.exponent, 8);
  EXPECT_EQ(one.around, -7);
  EXPECT_TRUE(one.apart && one.few);
  values[20] = -3e36F;
  EXPECT_EQ(scanned(values).loudest.at, 20);
}

TEST(Loudest, DoesNotStandApartOfManyLikeIt) {
  std::vector<float> rows = weights(4'096);
  for (std::size_t i = 0; i < 128; i++) rows[i] *= 1e6F;
  EXPECT_FALSE(scanned(rows).loudest.few);
  std::vector<float> slope(64);
  for (std::size_t i = 0; i < slope.size(); i++) slope[i] = std::ldexp(1.0F, static_cast<int>(i) - 40);
  EXPECT_FALSE(scanned(slope).loudest.apart);
  EXPECT_FALSE(scanned({1000}).loudest.apart);
  Loudest same = scanned(std::vector<float>(64, 1e30F)).loudest;
  EXPECT_FALSE(same.apart);
  EXPECT_EQ(same.around, same.exponent);
  // Random bits: exponents from end to end, and here and there a gap
  std::mt19937 random(5);
  for (int trial = 0; trial < 200; trial++) {
    std::vector<float> any(200);
    for (float& v : any) v = std::ldexp(1.0F, static_cast<int>(random() % 200) - 100);
    EXPECT_FALSE(scanned(any).loudest.apart) << trial;
  }
}

TEST(Loudest, IsThatOfTheLaterStretchOnlyIfItIsLarger) {
  NonFinite a = scanned({0, 1000}), b = scanned({2000, 0}), c = scanned({1000});
  a.merge(c);
  EXPECT_EQ(a.loudest.at, 1);
  a.merge(b);
  EXPECT_EQ(a.loudest.at, 0);
  EXPECT_EQ(a.loudest.exponent, 10);
}

}  // namespace
}  // namespace mckpt::impl
