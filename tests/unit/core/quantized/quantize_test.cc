// Codes are the nearest ones, by a search over all codes; scales are what each rule says; and what does not
// fit is counted.
#include "core/quantized/quantize.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "core/quantized/checks.h"
#include "core/quantized/codes.h"
#include "core/quantized/dequantize.h"
#include "core/quantized/value_rows.h"

namespace mckpt::impl::quantize_test {
namespace {

using Bytes = std::vector<u8>;

// The nearest of the positive numbers that codes are, which ascend; of two that are as near, the even code.
template <typename Value>
u8 nearest(float magnitude, u8 last, Value value) {
  u8 best = 0;
  for (int code = 1; code <= last; code++) {
    double far =
        std::fabs(static_cast<double>(value(static_cast<u8>(code))) - static_cast<double>(magnitude));
    double before = std::fabs(static_cast<double>(value(best)) - static_cast<double>(magnitude));
    if (far < before || (far == before && code % 2 == 0)) best = static_cast<u8>(code);
  }
  return best;
}

TEST(Quantize, CodesAreTheNearestOnesOfEveryBf16AndBetween) {
  std::mt19937 random(4);
  for (u32 half = 0; half < 0x8000; half += 3) {
    // A bf16 value, which ties are among, and one close to it.
    for (u32 bits : {half << 16, half << 16 | (static_cast<u32>(random()) & 0xffff)}) {
      float value = std::bit_cast<float>(bits);
      bool nan = value != value;
      u8 e4m3 = nan ? 0x7f : nearest(std::min(value, kE4M3Max), 0x7e, e4m3_value);
      u8 e2m1 = nan ? 0 : nearest(std::min(value, kE2M1Max), 7, e2m1_value);
      ASSERT_EQ(e4m3_code(value), e4m3) << value;
      ASSERT_EQ(e4m3_code(-value), nan ? 0x7f : e4m3 | 0x80) << value;
      ASSERT_EQ(e2m1_code(value), e2m1) << value;
      ASSERT_EQ(e2m1_code(-value), nan ? 0 : e2m1 | 8) << value;
    }
  }
}

TEST(Quantize, TiesOfBothFormatsGoToEven) {
  for (int code = 0; code < 0x7e; code++) {
    float tie = (e4m3_value(static_cast<u8>(code)) + e4m3_value(static_cast<u8>(code + 1))) / 2;
    EXPECT_EQ(e4m3_code(tie), code + code % 2) << tie;
  }
  for (int code = 0; code < 7; code++) {
    float tie = (kE2M1Values[code] + kE2M1Values[code + 1]) / 2;
    EXPECT_EQ(e2m1_code(tie), code + code % 2) << tie;
  }
}

TEST(Quantize, ProcessorsAgree) {
  std::mt19937 random(5);
  for (int round = 0; round < 2000; round++) {
    std::vector<float> values(1 + random() % kPieceItems);
    for (float& value : values) value = std::bit_cast<float>(static_cast<u32>(random()));
    if (round % 2)  // numbers that are neither lost nor zero
      for (float& value : values)
        value = std::ldexp(static_cast<float>(static_cast<i32>(random() % 2001) - 1000), -8);
    float scale =
        std::ldexp(1.f + static_cast<float>(random() % 999) / 999, static_cast<int>(random() % 20) - 10);
    Bytes a(values.size()), b(values.size());
    i64 items = static_cast<i64>(values.size());
    for (auto codes_of : {e4m3_codes, e2m1_codes}) {
      QuantLosses plain = codes_of(Processor::kAny, values.data(), items, scale, a.data());
      QuantLosses best = codes_of(best_processor(), values.data(), items, scale, b.data());
      ASSERT_TRUE(a == b);
      ASSERT_EQ(plain.nan, best.nan);
      ASSERT_EQ(plain.clamped, best.clamped);
    }
  }
}

// The scale of a block of one row with these values.
template <typename Stored = float>
Stored scale_of(CodeFormat codes, DType type, ScaleRule rule, std::vector<float> values) {
  QuantLayout s;
  s.codes = codes, s.scales = type;
  s.rows = 1, s.columns = s.block_columns = static_cast<i64>(values.size());
  Stored scale{};
  make_scales(s, rule, 0, 1, {DType::kF32, reinterpret_cast<const u8*>(values.data()), 0},
              reinterpret_cast<u8*>(&scale));
  return scale;
}

TEST(Quantize, ScalesAreWhatEachRuleSays) {
  auto fp8 = [](ScaleRule rule, std::vector<float> values) {
    return scale_of(CodeFormat::kE4M3, DType::kF32, rule, values);
  };
  EXPECT_EQ(fp8(ScaleRule::kAmax, {1, -896, 3}), 2);
  EXPECT_EQ(fp8(ScaleRule::kAmax, {0.1f, -0.3f}), 0.3f / 448);
  EXPECT_EQ(fp8(ScaleRule::kAmax, {0, -0.f}), 0x1.1ap-40f / 448);  // bf16(1e-12)
  EXPECT_EQ(fp8(ScaleRule::kAmax, {1e-13f, 0}), 0x1.1ap-40f / 448);
  EXPECT_EQ(fp8(ScaleRule::kPowerOfTwo, {0, 448}), 1);
  EXPECT_EQ(fp8(ScaleRule::kPowerOfTwo, {0, 449}), 2);
  EXPECT_EQ(fp8(ScaleRule::kPowerOfTwo, {-224, 0}), 0.5f);
  EXPECT_EQ(fp8(ScaleRule::kPowerOfTwo, {0, 0}), 1);
  auto mx = [](ScaleRule rule, std::vector<float> values) {
    return static_cast<int>(scale_of<u8>(CodeFormat::kE2M1, DType::kU8, rule, values)) - 127;
  };
  struct Case {
    float amax;
    int exponent;
  };
  // 4 to 6 fit a scale of 1; 6.5 to 7.9 are clamped.
  for (const Case& c : {Case{4, 0}, Case{6, 0}, Case{6.5f, 0}, Case{7.9f, 0}, Case{8, 1}, Case{0.75f, -3},
                        Case{0, -127}, Case{1e-44f, -127}, Case{3e38f, 125}}) {
    EXPECT_EQ(mx(ScaleRule::kMxFloor, {c.amax, 0}), c.exponent) << c.amax;
    EXPECT_EQ(mx(ScaleRule::kMxFloor, {0, -c.amax}), c.exponent) << c.amax;
  }
  EXPECT_EQ(scale_of<u8>(CodeFormat::kE4M3, DType::kF8E8M0, ScaleRule::kPowerOfTwo, {449}), 128);
  EXPECT_EQ(scale_of<u16>(CodeFormat::kE4M3, DType::kBF16, ScaleRule::kAmax, {448}), 0x3f80);
}

TEST(Quantize, BlocksHaveScalesOfTheirOwnInEveryMatrix) {
  // Two matrices of 3 x 5 in blocks of 2 x 2; each value is its block's number, 1 to 12, and one more in a
  // corner.
  QuantLayout s;
  s.matrices = 2, s.rows = 3, s.columns = 5, s.block_rows = 2, s.block_columns = 2;
  std::vector<float> values, want(12), got(12, -1);
  for (i64 row = 0; row < 6; row++)
    for (i64 column = 0; column < 5; column++) {
      i64 block = s.scale_row_of(row) * 3 + column / 2;
      values.push_back(static_cast<float>(block + 1));
      want[block] = static_cast<float>(block + 1) / 448;
    }
  RowsOfValues rows{DType::kF32, reinterpret_cast<const u8*>(values.data()), 20};
  make_scales(s, ScaleRule::kAmax, 0, 6, rows, reinterpret_cast<u8*>(got.data()));
  EXPECT_EQ(got, want);
  Bytes codes(30);
  EXPECT_FALSE(
      quantize(s, 0, 6, rows, reinterpret_cast<const u8*>(want.data()), nullptr, codes.data()).any());
  for (u8 code : codes) EXPECT_EQ(code, 0x7e);
  // The second matrix alone, from its second row of blocks on.
  rows.data += 5 * 20;
  make_scales(s, ScaleRule::kAmax, 5, 1, rows, reinterpret_cast<u8*>(got.data()));
  EXPECT_EQ(got[2], 12.f / 448);
  EXPECT_EQ(got[3], want[3]);
}

TEST(Quantize, CodesOfAnyLayoutComeBack) {
  std::mt19937 random(6);
  auto below = [&](i64 n) { return static_cast<i64>(random() % static_cast<u32>(n)); };
  for (int round = 0; round < 1000; round++) {
    QuantLayout s;
    const CodeFormat kFormats[] = {CodeFormat::kE4M3, CodeFormat::kE5M2,      CodeFormat::kE2M3,
                                   CodeFormat::kE2M1, CodeFormat::kPackedInt, CodeFormat::kInt8};
    s.codes = kFormats[below(6)], s.int_bits = static_cast<int>(2 + below(7));
    s.whole_codes = s.codes == CodeFormat::kPackedInt && below(2) == 0;
    s.matrices = 1 + below(2), s.rows = 1 + below(6), s.columns = 2 * (1 + below(300));
    if (s.codes == CodeFormat::kE2M3) s.columns *= 2;
    s.block_rows = 1 + below(3), s.block_columns = 2 * (1 + below(100));
    // Bytes with a sign hold the codes that `int_bits` bits can.
    s.zero_points = has_integers(s) && s.matrices == 1 && below(2) == 0;
    s.zero_points_are_bytes = s.codes == CodeFormat::kInt8;
    if (s.zero_points && !s.zero_points_are_bytes) s.block_rows = 1;
    if (s.matrices == 1 && s.block_rows == 1 && below(2) == 0) {
      std::vector<i32> groups;
      for (i64 c = 0; c < s.columns; c++) groups.push_back(static_cast<i32>(c / s.block_columns));
      std::ranges::shuffle(groups, random);
      s.group_of = std::make_shared<const std::vector<i32>>(std::move(groups));
    }
    ASSERT_EQ(layout_fault(s), "");
    Bytes codes(static_cast<std::size_t>(s.all_rows() * s.code_row_bytes())), again(codes.size(), 0x33);
    for (i64 r = 0; r < s.all_rows(); r++) {
      u8* row = codes.data() + r * s.code_row_bytes();
      int bits = code_bits(s);
      for (i64 i = 0; i < s.columns * bits; i++) {
        const i64 at = s.code_bit_of(i / bits) + i % bits;
        row[at / 8] = static_cast<u8>(row[at / 8] | below(2) << at % 8);
      }
      if (s.codes == CodeFormat::kInt8)
        for (i64 c = 0; c < s.columns; c++)
          row[c] = static_cast<u8>(below(1 << s.int_bits) - (1 << (s.int_bits - 1)));
      if (s.codes == CodeFormat::kE4M3)
        for (i64 c = 0; c < s.columns; c++) row[c] = is_e4m3_nan(row[c]) ? 0x7e : row[c];
      if (s.codes == CodeFormat::kE5M2)
        for (i64 c = 0; c < s.columns; c++) row[c] = (row[c] & 0x7f) >= 0x7c ? 0x7b : row[c];
    }
    ASSERT_FALSE(count_code_faults(s, 0, s.all_rows(), codes).any());
    std::vector<float> scales(static_cast<std::size_t>(s.matrices * s.scale_rows() * s.scale_columns()));
    for (float& scale : scales)
      scale = std::ldexp(1.f + static_cast<float>(below(999)) / 999, static_cast<int>(below(40)) - 20);
    const i64 zero_bytes = s.zero_points_are_bytes ? s.scale_rows() * s.scale_columns()
                                                   : s.zero_point_word_rows() * s.scale_columns() * 4;
    Bytes zeros(static_cast<std::size_t>(s.zero_points ? zero_bytes : 0));
    for (u8& byte : zeros)
      byte = static_cast<u8>(s.zero_points_are_bytes ? below(1 << s.int_bits) - (1 << (s.int_bits - 1))
                                                     : below(256));
    const u8* stored_scales = reinterpret_cast<const u8*>(scales.data());
    // bf16 has 8 bits, and differences of codes and zero points of 8 bits have 9.
    bool fits_bf16 = !(s.zero_points && s.int_bits == 8);
    DType type = fits_bf16 && below(2) ? DType::kBF16 : DType::kF32;
    i64 row_bytes = dtype_bytes(type, s.columns);
    Bytes values(static_cast<std::size_t>(s.all_rows() * row_bytes));
    dequantize(s, {0, s.all_rows(), 0, s.columns},
               {codes.data(), s.code_row_bytes(), stored_scales, s.scale_row_bytes(), zeros.data()}, type,
               values.data(), row_bytes);
    // In two parts, the second of which begins at any row.
    i64 cut = below(s.all_rows() + 1);
    for (auto [first, rows] : {std::pair{i64{0}, cut}, std::pair{cut, s.all_rows() - cut}}) {
      if (rows == 0) continue;
      QuantLosses lost =
          quantize(s, first, rows, {type, values.data() + first * row_bytes, row_bytes},
                   stored_scales + s.scale_row_of(first) * s.scale_row_bytes(),
                   zeros.data() + (!s.zero_points            ? 0
                                   : s.zero_points_are_bytes ? s.scale_row_of(first) * s.scale_columns()
                                                             : s.bit_of(first) / 32 * s.scale_columns() * 4),
                   again.data() + first * s.code_row_bytes());
      ASSERT_FALSE(lost.any()) << "round " << round;
    }
    ASSERT_TRUE(again == codes) << "round " << round;
    // Codes one by one, the even columns last: each copy leaves its neighbours as they are.
    Bytes copied(codes.size());
    for (i64 r = 0; r < s.all_rows(); r++)
      for (i64 first : {1, 0})
        for (i64 c = first; c < s.columns; c += 2)
          copy_code(s, c, codes.data() + r * s.code_row_bytes(), copied.data() + r * s.code_row_bytes());
    ASSERT_TRUE(copied == codes) << "round " << round;
  }
}

// The 32 magnitudes of codes of six bits, in the order of the codes; and the nearest of them, ties to the even
// code.
TEST(Quantize, CodesOfSixBitsAreTheNearest) {
  std::vector<float> magnitudes;
  for (int m = 0; m < 8; m++) magnitudes.push_back(static_cast<float>(m) / 8);
  for (float power : {1.f, 2.f, 4.f})
    for (int m = 0; m < 8; m++) magnitudes.push_back(power * (1 + static_cast<float>(m) / 8));
  for (int code = 0; code < 64; code++) {
    const float expected = magnitudes[static_cast<std::size_t>(code & 31)];
    EXPECT_EQ(e2m3_value(static_cast<u8>(code)), code & 32 ? -expected : expected) << code;
    EXPECT_EQ(e2m3_code(e2m3_value(static_cast<u8>(code))), code);
  }
  for (int sixteenths = 0; sixteenths < 16 * 9 * 8; sixteenths++)
    for (float nudge : {-1e-5f, 0.f, 1e-5f}) {
      const float value = static_cast<float>(sixteenths) / 128 + nudge;
      if (value < 0) continue;
      int nearest = 0;
      for (int code = 1; code < 32; code++) {
        const float old = std::fabs(magnitudes[static_cast<std::size_t>(nearest)] - value),
                    next = std::fabs(magnitudes[static_cast<std::size_t>(code)] - value);
        if (next < old || (next == old && code % 2 == 0)) nearest = code;
      }
      ASSERT_EQ(e2m3_code(value), nearest) << value;
      ASSERT_EQ(e2m3_code(-value), nearest | 32) << value;
    }
}

TEST(Quantize, CountsWhatDoesNotFit) {
  QuantLayout s;
  s.rows = 1, s.columns = 8, s.block_columns = 8;
  const float values[] = {448, 464, 465, -1e9f, INFINITY, NAN, 0, -0.f}, one = 1, zero = 0;
  RowsOfValues rows{DType::kF32, reinterpret_cast<const u8*>(values), 0};
  u8 codes[8];
  QuantLosses lost = quantize(s, 0, 1, rows, reinterpret_cast<const u8*>(&one), nullptr, codes);
  EXPECT_EQ(lost.nan, 1);
  EXPECT_EQ(lost.clamped, 3);
  EXPECT_EQ(Bytes(codes, codes + 8), (Bytes{0x7e, 0x7e, 0x7e, 0xfe, 0x7e, 0x7f, 0, 0x80}));
  lost = quantize(s, 0, 1, rows, reinterpret_cast<const u8*>(&zero), nullptr, codes);
  EXPECT_EQ(lost.nan, 1);
  EXPECT_EQ(lost.clamped, 5);
  EXPECT_EQ(codes[7], 0x80);
  s.codes = CodeFormat::kE2M1, s.scales = DType::kU8;
  u8 byte = 255;  // 2^128
  lost = quantize(s, 0, 1, rows, &byte, nullptr, codes);
  EXPECT_EQ(lost.nan, 1);
  EXPECT_EQ(lost.clamped, 1);
  EXPECT_EQ(Bytes(codes, codes + 4), (Bytes{0x00, 0x80, 0x07, 0x80}));
}

TEST(Quantize, FaultsOfCodesAndScalesAreCounted) {
  QuantLayout s;
  s.rows = 2, s.columns = 4, s.block_columns = 4;
  CodeFaults faults = count_code_faults(s, 5, 2, Bytes{0, 1, 0x7e, 0xfe, 0x80, 0xff, 0x7f, 2});
  EXPECT_EQ(faults.codes, 8);
  EXPECT_EQ(faults.nan.count, 2);
  EXPECT_EQ(faults.nan.first, 5 * 4 + 5);
  EXPECT_TRUE(has_bad_codes(s.codes, Bytes{0x7e, 0xff}));
  EXPECT_FALSE(has_bad_codes(s.codes, Bytes(100, 0xfe)));
  s.codes = CodeFormat::kE5M2;
  faults = count_code_faults(s, 0, 2, Bytes{0x7b, 0x7c, 0xfc, 0x7d, 0xff, 0, 0, 0});
  EXPECT_EQ(faults.infinite.count, 2);
  EXPECT_EQ(faults.infinite.first, 1);
  EXPECT_EQ(faults.nan.count, 2);
  EXPECT_EQ(faults.nan.first, 3);
  EXPECT_TRUE(has_bad_codes(s.codes, Bytes{0, 0xfc}));
  EXPECT_FALSE(has_bad_codes(s.codes, Bytes{0x7b, 0xfb}));
  s.codes = CodeFormat::kPackedInt, s.int_bits = 3, s.columns = 3;  // 9 bits of 32
  faults = count_code_faults(s, 0, 2, Bytes{0xff, 1, 0, 0, 0xff, 3, 0, 0});
  EXPECT_EQ(faults.padding.count, 1);
  EXPECT_EQ(faults.padding.first, 5);

  const float scales[] = {1, 0, -0.f, -2, INFINITY, -INFINITY, NAN, 1e-45f};
  ScaleFaults scale = count_scale_faults(DType::kF32, {reinterpret_cast<const u8*>(scales), sizeof scales});
  EXPECT_EQ(scale.scales, 8);
  EXPECT_EQ(std::pair(scale.zero.count, scale.zero.first), std::pair(i64{2}, i64{1}));
  EXPECT_EQ(std::pair(scale.negative.count, scale.negative.first), std::pair(i64{1}, i64{3}));
  EXPECT_EQ(std::pair(scale.infinite.count, scale.infinite.first), std::pair(i64{2}, i64{4}));
  EXPECT_EQ(std::pair(scale.nan.count, scale.nan.first), std::pair(i64{1}, i64{6}));
  scale = count_scale_faults(DType::kU8, Bytes{0, 254, 255});
  EXPECT_EQ(scale.nan.count, 1);
  EXPECT_EQ(scale.nan.first, 2);
}

TEST(Quantize, TheRangeOfScalesIsSeenAtOnce) {
  auto range = [](std::vector<float> scales) {
    return range_of_scales(DType::kF32, {reinterpret_cast<const u8*>(scales.data()), scales.size() * 4});
  };
  EXPECT_FALSE(range({1, 3, 2}).bad || range({1, 3, 2}).zero);
  EXPECT_EQ(range({1, 3, 2}).largest, 3);
  EXPECT_TRUE(range({1, -0.f, 2}).zero);
  for (float scale : {NAN, INFINITY, -INFINITY, -1e-45f}) EXPECT_TRUE(range({1, scale, 2}).bad) << scale;
  EXPECT_FALSE(range_of_scales(DType::kU8, Bytes{0, 254, 3}).bad);
  EXPECT_EQ(range_of_scales(DType::kU8, Bytes{0, 254, 3}).largest, 0x1p127);
  EXPECT_TRUE(range_of_scales(DType::kF8E8M0, Bytes{0, 255, 3}).bad);
  EXPECT_TRUE(range_of_scales(DType::kF8E4M3, Bytes{1, 0x80}).zero);
}

}  // namespace
}  // namespace mckpt::impl::quantize_test
