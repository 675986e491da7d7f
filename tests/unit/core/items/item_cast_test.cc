#include "core/items/item_cast.h"
#include "core/base/error.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

namespace mckpt::impl {
namespace item_cast_test {

u16 cast16(DType to, float f) {
  u16 out = 0;
  cast_items({DType::kF32, DType::kF32, to, 0, 0}, reinterpret_cast<const u8*>(&f),
             reinterpret_cast<u8*>(&out), 1);
  return out;
}

float value16(DType d, u16 bits) { return value_of(d, reinterpret_cast<const u8*>(&bits)); }

class HalfTypes : public testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(Both, HalfTypes, testing::Values(DType::kBF16, DType::kF16),
                         [](const auto& p) { return std::string(dtype_name(p.param)); });

TEST_P(HalfTypes, WideningAndBackIsTheIdentityForEveryValue) {
  for (u32 b = 0; b < 65536; b++) {
    u16 bits = static_cast<u16>(b);
    float f = value16(GetParam(), bits);
    if (std::isnan(f))
      ASSERT_TRUE(std::isnan(value16(GetParam(), cast16(GetParam(), f)))) << b;
    else
      ASSERT_EQ(cast16(GetParam(), f), bits) << b;
  }
}

// Between every two neighbours: the middle goes to the even one, what is a hair to either side to the nearer
// one.
TEST_P(HalfTypes, RoundsToNearestAndTiesToEven) {
  u16 largest = GetParam() == DType::kF16 ? 0x7bff : 0x7f7f;
  for (u16 bits = 0; bits < largest; bits++) {
    float low = value16(GetParam(), bits), high = value16(GetParam(), static_cast<u16>(bits + 1));
    float middle = static_cast<float>((static_cast<double>(low) + static_cast<double>(high)) / 2);
    u16 even = bits % 2 == 0 ? bits : static_cast<u16>(bits + 1);
    ASSERT_EQ(cast16(GetParam(), middle), even) << bits;
    ASSERT_EQ(cast16(GetParam(), std::nextafter(middle, low)), bits) << bits;
    ASSERT_EQ(cast16(GetParam(), std::nextafter(middle, high)), bits + 1) << bits;
    ASSERT_EQ(cast16(GetParam(), -middle), even | 0x8000) << bits;
  }
}

TEST(ConvertItems, OverflowBecomesInfinity) {
  EXPECT_EQ(cast16(DType::kF16, 65519.f), 0x7bff);
  EXPECT_EQ(cast16(DType::kF16, 65520.f), 0x7c00);
  EXPECT_EQ(cast16(DType::kBF16, 3.4e38f), 0x7f80);
  EXPECT_EQ(cast16(DType::kF16, -INFINITY), 0xfc00);
}

TEST(ConvertItems, GoesThroughTheThirdType) {
  // A run that keeps its parameters in bf16 saves the rounded value as fp32.
  std::vector<float> in(3000, 1.00390625f + 1e-5f), out(3000);  // just above the middle of two bf16 values
  cast_items({DType::kF32, DType::kBF16, DType::kF32, 0, 0}, reinterpret_cast<u8*>(in.data()),
             reinterpret_cast<u8*>(out.data()), 3000);
  for (float f : out) ASSERT_EQ(f, 1.0078125f);
}

TEST(ConvertItems, AddsInTheTypeThatHoldsTheValue) {
  // Every bf16 weight from 0.5 to 256 survives -1 and +1.
  for (u16 bits = 0x3f00; bits <= 0x4380; bits++) {
    u16 stored = 0, back = 0;
    cast_items({DType::kBF16, DType::kBF16, DType::kBF16, -1, 0}, reinterpret_cast<u8*>(&bits),
               reinterpret_cast<u8*>(&stored), 1);
    ASSERT_EQ(value16(DType::kBF16, stored),
              value16(DType::kBF16, cast16(DType::kBF16, value16(DType::kBF16, bits) - 1)));
    cast_items({DType::kBF16, DType::kBF16, DType::kBF16, 0, 1}, reinterpret_cast<u8*>(&stored),
               reinterpret_cast<u8*>(&back), 1);
    ASSERT_EQ(back, bits);
  }
}

TEST(ConvertItems, CountsWhatAddingHasRounded) {
  auto count = [](ItemCast c, std::vector<u16> values) {
    return rounded_items(c, reinterpret_cast<const u8*>(values.data()), std::ssize(values));
  };
  ItemCast less_one{DType::kBF16, DType::kBF16, DType::kBF16, -1, 0}, more_one = less_one;
  std::swap(more_one.add_before, more_one.add_after), more_one.add_after = 1;
  std::vector<u16> kept;
  for (u16 bits = 0x3f00; bits <= 0x4380; bits++) kept.push_back(bits);
  EXPECT_EQ(count(less_one, kept), 0);
  EXPECT_EQ(count(less_one, {}), 0);
  EXPECT_EQ(count(less_one, std::vector<u16>(5000, 0x3dcd)), 5000);
  EXPECT_EQ(count(more_one, std::vector<u16>(5000, 0x3a80)), 5000);
  EXPECT_EQ(count(no_cast(DType::kBF16), {0x3dcd}), 0);
  // 0.1 and 0.3 lose their last bits to -1, 0.25 has none there; 2^-10 is gone beside 1.
  EXPECT_EQ(count(less_one, {0x3dcd, 0x3e80, 0x3e9b, 0x3f80}), 2);
  EXPECT_EQ(count(more_one, {0x3a80, 0x3f80, 0}), 1);
  // A run's own bf16 parameter rounds the sum; without one it is taken in the wider type, where it is exact.
  EXPECT_EQ(count({DType::kBF16, DType::kBF16, DType::kF32, -1, 0}, {0x3dcd, 0x3f80}), 1);
  EXPECT_EQ(count({DType::kBF16, DType::kF32, DType::kF32, -1, 0}, {0x3dcd, 0x3f80}), 0);
  EXPECT_EQ(count({DType::kBF16, DType::kBF16, DType::kF32, 0, 1}, {0x3a80, 0x3f80}), 0);
}

TEST(ConvertItems, AddsInTheWiderOfTwoTypes) {
  // Every bf16 weight from 2^-16 to 2^16 survives -1 in fp32 and +1 on the way back, whatever its sign.
  for (u32 magnitude = 0x3780; magnitude <= 0x4780; magnitude++)
    for (u32 sign : {0u, 0x8000u}) {
      u16 bits = static_cast<u16>(magnitude | sign), back = 0;
      float stored = 0;
      const ItemCast to{DType::kBF16, DType::kF32, DType::kF32, -1, 0};
      const ItemCast from{DType::kF32, DType::kF32, DType::kBF16, 0, 1};
      cast_items(to, reinterpret_cast<u8*>(&bits), reinterpret_cast<u8*>(&stored), 1);
      ASSERT_EQ(stored, value16(DType::kBF16, bits) - 1);
      cast_items(from, reinterpret_cast<u8*>(&stored), reinterpret_cast<u8*>(&back), 1);
      ASSERT_EQ(back, bits);
      ASSERT_EQ(rounded_items(to, reinterpret_cast<u8*>(&bits), 1), 0);
      ASSERT_EQ(rounded_items(from, reinterpret_cast<u8*>(&stored), 1), 0);
    }
  double wide = 0;
  float third = 0x1p-30f;
  cast_items({DType::kF32, DType::kF64, DType::kF64, 1, 0}, reinterpret_cast<u8*>(&third),
             reinterpret_cast<u8*>(&wide), 1);
  EXPECT_EQ(wide, 1 + 0x1p-30);
}

TEST(ConvertItems, DoublesKeepTheirDigitsAmongThemselves) {
  double in = 0.1, out = 0;
  cast_items({DType::kF64, DType::kF64, DType::kF64, 1, 0}, reinterpret_cast<u8*>(&in),
             reinterpret_cast<u8*>(&out), 1);
  EXPECT_EQ(out, 1.1);
}

TEST(ConvertItems, OnlyFloatsAreCast) {
  EXPECT_NO_THROW(check_cast(no_cast(DType::kI64)));
  EXPECT_THROW(check_cast({DType::kI64, DType::kI64, DType::kF32, 0, 0}), Error);
  EXPECT_THROW(check_cast({DType::kF8E4M3, DType::kF8E4M3, DType::kBF16, 0, 0}), Error);
  EXPECT_THROW(check_cast({DType::kU8, DType::kU8, DType::kU8, -1, 0}), Error);
}

}  // namespace item_cast_test
}  // namespace mckpt::impl
