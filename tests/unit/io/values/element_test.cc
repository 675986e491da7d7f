#include "io/values/element.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

namespace mckpt::impl {
namespace {

std::string text(DType dtype, std::vector<u8> bytes, i64 index = 0) {
  return number_text(dtype, bytes.data(), index);
}

TEST(Element, SmallFloatsHaveTheirPublishedExtremes) {
  struct Case {
    DType dtype;
    u32 code;
    double value;
  };
  const Case cases[] = {
      {DType::kF8E4M3, 0x7e, 448},
      {DType::kF8E4M3, 0x01, std::ldexp(1.0, -9)},
      {DType::kF8E4M3, 0x80, -0.0},
      {DType::kF8E5M2, 0x7b, 57344},
      {DType::kF8E5M2, 0x01, std::ldexp(1.0, -16)},
      {DType::kF8E5M2, 0xfc, -INFINITY},
      {DType::kF8E4M3FNUZ, 0x7f, 240},
      {DType::kF8E4M3FNUZ, 0x01, std::ldexp(1.0, -10)},
      {DType::kF8E5M2FNUZ, 0x7f, 57344},
      {DType::kF8E5M2FNUZ, 0x01, std::ldexp(1.0, -17)},
      {DType::kF8E8M0, 0x7f, 1},
      {DType::kF8E8M0, 0x00, std::ldexp(1.0, -127)},
      {DType::kF8E8M0, 0xfe, std::ldexp(1.0, 127)},
      {DType::kF4, 0x7, 6},
      {DType::kF4, 0x1, 0.5},
      {DType::kF4, 0xf, -6},
      {DType::kF6E2M3, 0x1f, 7.5},
      {DType::kF6E2M3, 0x01, 0.125},
      {DType::kF6E3M2, 0x1f, 28},
      {DType::kF6E3M2, 0x01, 0.0625},
      {DType::kF16, 0x7bff, 65504},
      {DType::kF16, 0x0001, std::ldexp(1.0, -24)},
      {DType::kBF16, 0x3f80, 1},
      {DType::kBF16, 0x0001, std::ldexp(1.0, -133)},
      {DType::kBF16, 0xff80, -INFINITY},
  };
  for (const Case& c : cases)
    EXPECT_EQ(small_float(c.dtype)->value(c.code), c.value) << dtype_name(c.dtype) << " " << c.code;
}

TEST(Element, SmallFloatsHaveTheirPublishedNaN) {
  auto nans = [](DType dtype) {
    i64 count = 0;
    for (double v : code_values(dtype)) count += std::isnan(v);
    return count;
  };
  EXPECT_EQ(nans(DType::kF8E4M3), 2);
  EXPECT_EQ(nans(DType::kF8E5M2), 6);
  EXPECT_EQ(nans(DType::kF8E4M3FNUZ), 1);
  EXPECT_EQ(nans(DType::kF8E5M2FNUZ), 1);
  EXPECT_EQ(nans(DType::kF8E8M0), 1);
  EXPECT_EQ(nans(DType::kF4), 0);
  EXPECT_EQ(nans(DType::kF6E3M2), 0);
  EXPECT_EQ(nans(DType::kF16), 2 * 1023);
  EXPECT_EQ(nans(DType::kBF16), 2 * 127);
}

// bfloat16 is the upper half of a float: an independent way to the value of every code.
TEST(Element, EveryBfloat16CodeIsItsFloat) {
  std::vector<double> values = code_values(DType::kBF16);
  for (u32 code = 0; code < 65536; code++) {
    u32 bits = code << 16;
    float expected;
    std::memcpy(&expected, &bits, 4);
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(values[code]));
    } else {
      EXPECT_EQ(values[code], expected) << code;
    }
  }
}

TEST(Element, TextLeadsBackToTheValue) {
  EXPECT_EQ(text(DType::kI64, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}), "9223372036854775807");
  EXPECT_EQ(text(DType::kU64, std::vector<u8>(8, 0xff)), "18446744073709551615");
  EXPECT_EQ(text(DType::kI8, {0x80}), "-128");
  EXPECT_EQ(text(DType::kI16, {0x00, 0x80}), "-32768");
  EXPECT_EQ(text(DType::kU16, {0xff, 0xff}), "65535");
  EXPECT_EQ(text(DType::kI32, {0, 0, 0, 0x80}), "-2147483648");
  EXPECT_EQ(text(DType::kBool, {2}), "true");
  EXPECT_EQ(text(DType::kBF16, {0xce, 0x3d}), "0.10058594");
  EXPECT_EQ(text(DType::kF32, {0xcd, 0xcc, 0xcc, 0x3d}), "0.1");
  EXPECT_EQ(text(DType::kF64, {0x9a, 0x99, 0x99, 0x99, 0x99, 0x99, 0xb9, 0x3f}), "0.1");
  EXPECT_EQ(text(DType::kF16, {0, 0xfc}), "-Infinity");
  EXPECT_EQ(text(DType::kF8E8M0, {0xff}), "NaN");
  EXPECT_EQ(text(DType::kC64, {0, 0, 0x80, 0x3f, 0, 0, 0, 0x40}, 1), "2");
}

TEST(Element, PackedCodesRunFromTheLowestBit) {
  EXPECT_EQ(text(DType::kF4x2, {0x71}, 0), "0.5");
  EXPECT_EQ(text(DType::kF4x2, {0x71}, 1), "6");
  // Six bits each: 1, 2, 3, 4 are 0x01 | 2 << 6 | 3 << 12 | 4 << 18.
  std::vector<u8> packed = {0x81, 0x30, 0x10};
  for (i64 i = 0; i < 4; i++)
    EXPECT_EQ(number_at(DType::kF6E2M3, packed.data(), i),
              small_float(DType::kF6E2M3)->value(static_cast<u32>(i + 1)));
}

}  // namespace
}  // namespace mckpt::impl
