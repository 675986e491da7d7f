// The kernels of every processor give the bits of the rule: every code with every kind of scale, and
// rectangles that begin and end anywhere, in memory that has no byte more than it needs.
#include "core/quantized/dequantize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "core/items/item_cast.h"
#include "core/quantized/checks.h"
#include "core/quantized/codes.h"
#include "core/quantized/plain_values.h"
#include "core/quantized/scales.h"

namespace mckpt::impl::dequantize_test {
namespace {

using Bytes = std::vector<u8>;
using Random = std::mt19937;

constexpr DType kTypes[] = {DType::kBF16, DType::kF16, DType::kF32};

std::vector<Processor> processors() {
  if (best_processor() == Processor::kAny) return {Processor::kAny};
  return {Processor::kAny, best_processor()};
}

template <typename T>
Bytes bytes_of(const std::vector<T>& values) {
  Bytes bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

// Compares all values of a tensor; says where they differ.
void expect_rule(const QuantLayout& s, const Bytes& codes, const Bytes& scales, const char* what) {
  ASSERT_EQ(layout_fault(s), "");
  StoredBytes stored{codes.data(), s.code_row_bytes(), scales.data(), s.scale_row_bytes(), nullptr};
  ValueTile all{0, s.all_rows(), 0, s.columns};
  for (DType to : kTypes) {
    i64 item = dtype_bytes(to, 1), row = s.columns * item;
    Bytes want(static_cast<std::size_t>(s.all_rows() * row)), got(want.size());
    dequantize_plainly(s, all, stored, to, want.data(), row);
    for (Processor p : processors()) {
      std::fill(got.begin(), got.end(), u8{0xaa});
      dequantize_on(p, s, all, stored, to, got.data(), row);
      for (i64 i = 0; i < static_cast<i64>(want.size()); i += item)
        ASSERT_EQ(std::memcmp(&want[i], &got[i], static_cast<std::size_t>(item)), 0)
            << what << " to " << dtype_name(to) << ", processor " << static_cast<int>(p) << ", row "
            << i / row << " column " << i % row / item << ": " << value_of(to, &want[i]) << " became "
            << value_of(to, &got[i]);
    }
  }
}

// Every sign and exponent of fp32, zero, subnormals, infinity and NaN among them, each with three mantissas.
std::vector<float> many_scales(Random& random) {
  std::vector<float> scales;
  for (u32 sign_exponent = 0; sign_exponent < 512; sign_exponent++)
    for (u32 mantissa : {0u, static_cast<u32>(random()) & 0x7fffff, static_cast<u32>(random()) & 0x7f0000})
      scales.push_back(std::bit_cast<float>(sign_exponent << 23 | mantissa));
  return scales;
}

TEST(Dequantize, EveryByteWithEveryExponentOfAScale) {
  Random random(1);
  std::vector<float> scales = many_scales(random);
  QuantLayout s;
  s.rows = static_cast<i64>(scales.size());
  s.columns = s.block_columns = 256;
  Bytes codes;
  for (i64 row = 0; row < s.rows; row++)
    for (int code = 0; code < 256; code++) codes.push_back(static_cast<u8>(code));
  for (CodeFormat format :
       {CodeFormat::kE4M3, CodeFormat::kE5M2, CodeFormat::kPackedInt, CodeFormat::kInt8}) {
    s.codes = format;
    s.int_bits = 8;
    expect_rule(s, codes, bytes_of(scales), "bytes");
  }
}

TEST(Dequantize, EveryE4M3WithEveryE8M0) {
  QuantLayout s;
  s.rows = s.columns = s.block_columns = 256;
  Bytes codes, scales;
  for (int row = 0; row < 256; row++) {
    scales.push_back(static_cast<u8>(row));
    for (int code = 0; code < 256; code++) codes.push_back(static_cast<u8>(code));
  }
  for (DType type : {DType::kF8E8M0, DType::kU8}) {
    s.scales = type;
    expect_rule(s, codes, scales, "MXFP8");
  }
}

TEST(Dequantize, EveryNibbleWithEveryScale) {
  Random random(2);
  QuantLayout s;
  s.columns = s.block_columns = 32;
  auto codes_of = [](i64 rows) {
    Bytes codes;
    for (i64 row = 0; row < rows; row++)
      for (int i = 0; i < 16; i++) codes.push_back(static_cast<u8>(i | (15 - i) << 4));
    return codes;
  };
  Bytes every_byte;
  for (int byte = 0; byte < 256; byte++) every_byte.push_back(static_cast<u8>(byte));
  s.codes = CodeFormat::kE2M1;
  s.rows = 256;
  s.scales = DType::kU8;
  expect_rule(s, codes_of(256), every_byte, "MXFP4");
  s.scales = DType::kF8E4M3;
  for (TensorScale rule : {TensorScale::kTimes, TensorScale::kDivide, TensorScale::kDivideToBf16})
    for (float tensor_scale : {1e-3f, 0.0123456f, 700.f, 3e38f, 1e-40f})
      for (bool plus_zero : {false, true}) {
        s.tensor_rule = rule, s.tensor_scale = tensor_scale, s.nibble_8_is_plus_zero = plus_zero;
        expect_rule(s, codes_of(256), every_byte, "NVFP4");
      }
  s = QuantLayout{};
  s.columns = s.block_columns = 32;
  s.codes = CodeFormat::kPackedInt;
  std::vector<float> scales = many_scales(random);
  s.rows = static_cast<i64>(scales.size());
  expect_rule(s, codes_of(s.rows), bytes_of(scales), "INT4");
}

// Any columns are in a group. pre: blocks of one row of one matrix.
void put_in_groups(QuantLayout& s, Random& random) {
  std::vector<i32> groups;
  for (i64 c = 0; c < s.columns; c++) groups.push_back(static_cast<i32>(c / s.block_columns));
  std::ranges::shuffle(groups, random);
  s.group_of = std::make_shared<const std::vector<i32>>(std::move(groups));
}

// A layout of any kind, small and odd.
QuantLayout drawn_layout(Random& random) {
  auto below = [&](i64 n) { return static_cast<i64>(random() % static_cast<u32>(n)); };
  const DType kScales[] = {DType::kF32,    DType::kBF16, DType::kF16,
                           DType::kF8E8M0, DType::kU8,   DType::kF8E4M3};
  QuantLayout s;
  s.codes = static_cast<CodeFormat>(below(6));
  s.int_bits = static_cast<int>(2 + below(7));
  s.whole_codes = s.codes == CodeFormat::kPackedInt && below(2) == 0;
  s.scales = kScales[below(6)];
  s.matrices = 1 + below(3), s.rows = 1 + below(9), s.columns = 1 + below(150);
  s.block_rows = 1 + below(5), s.block_columns = 1 + below(40);
  if (below(4) == 0) s.block_columns = 1;  // more blocks than are widened at a time
  if (below(4) == 0) s.block_columns = s.columns + below(9);
  s.product_is_f16 = below(4) == 0;
  if (s.codes == CodeFormat::kE2M3) s.columns = ceil_div(s.columns, 4) * 4;
  if (s.codes == CodeFormat::kE2M1) s.columns += s.columns % 2, s.block_columns += s.block_columns % 2;
  s.zero_points = has_integers(s) && below(3) == 0;
  s.zero_points_are_bytes = s.zero_points && below(2) == 0;
  if (s.zero_points && !s.zero_points_are_bytes) s.block_rows = 1, s.matrices = 1;
  if (below(4) == 0) s.block_rows = 1, s.matrices = 1, put_in_groups(s, random);
  return s;
}

i64 zero_point_bytes(const QuantLayout& s) {
  if (!s.zero_points) return 0;
  if (s.zero_points_are_bytes) return s.matrices * s.scale_rows() * s.scale_columns();
  return s.zero_point_word_rows() * s.scale_columns() * 4;
}

Bytes drawn_bytes(i64 count, Random& random) {
  Bytes bytes(static_cast<std::size_t>(count));
  for (u8& byte : bytes) byte = static_cast<u8>(random());
  return bytes;
}

TEST(Dequantize, RectanglesAndRangesOfAnyLayout) {
  Random random(3);
  auto below = [&](i64 n) { return static_cast<i64>(random() % static_cast<u32>(n)); };
  for (int round = 0; round < 3000; round++) {
    QuantLayout s = drawn_layout(random);
    ASSERT_EQ(layout_fault(s), "");
    const Bytes codes = drawn_bytes(s.all_rows() * s.code_row_bytes(), random);
    const Bytes scales = drawn_bytes(s.matrices * s.scale_rows() * s.scale_row_bytes(), random);
    const Bytes zeros = drawn_bytes(zero_point_bytes(s), random);
    DType to = kTypes[below(3)];
    i64 item = dtype_bytes(to, 1), row = s.columns * item;
    ValueTile all{0, s.all_rows(), 0, s.columns};
    StoredBytes stored{codes.data(), s.code_row_bytes(), scales.data(), s.scale_row_bytes(), zeros.data()};
    Bytes want(static_cast<std::size_t>(s.all_rows() * row));
    dequantize_plainly(s, all, stored, to, want.data(), row);

    ValueTile tile{below(s.all_rows()), 0, below(s.columns), 0};
    tile.rows = 1 + below(s.all_rows() - tile.first_row),
    tile.columns = 1 + below(s.columns - tile.first_column);
    Bytes got = want;
    StoredBytes at = stored_at(s, all, stored, tile);
    u8* corner = got.data() + tile.first_row * row + tile.first_column * item;
    for (i64 r = 0; r < tile.rows; r++)
      std::memset(corner + r * row, 0x55, static_cast<std::size_t>(tile.columns * item));
    for (Processor p : processors()) {
      dequantize_on(p, s, tile, at, to, corner, row);
      ASSERT_TRUE(got == want) << "round " << round;
    }
    Bytes turned(static_cast<std::size_t>(tile.rows * tile.columns * item));
    dequantize_turned(s, tile, at, to, turned.data(), tile.rows * item);
    for (i64 r = 0; r < tile.rows; r++)
      for (i64 c = 0; c < tile.columns; c++)
        ASSERT_EQ(std::memcmp(corner + r * row + c * item, &turned[(c * tile.rows + r) * item],
                              static_cast<std::size_t>(item)),
                  0)
            << "round " << round;

    // A range of items, from copies that end where the needed bytes do.
    i64 items = s.all_rows() * s.columns, first = below(items), end = first + 1 + below(items - first);
    StoredRanges need = stored_ranges(s, first, end);
    auto copy = [](const Bytes& from, ByteRange range) {
      return Bytes(from.begin() + range.begin, from.begin() + range.end);
    };
    Bytes range(static_cast<std::size_t>((end - first) * item));
    dequantize_items(s, first, end, copy(codes, need.codes), copy(scales, need.scales),
                     copy(zeros, need.zero_points), to, range.data());
    ASSERT_EQ(std::memcmp(range.data(), &want[first * item], range.size()), 0) << "round " << round;
  }
}

// Two rows of six columns in three groups of two; the scales of row 0 are 1, 10 and 100.
//
//   groups of columns   2 0 0 1 2 1
//   codes               1 2 3 4 5 6     -->     100 2 3 40 500 60
TEST(Dequantize, ColumnsInGroupsOfTheirOwn) {
  QuantLayout s;
  s.codes = CodeFormat::kInt8, s.int_bits = 8, s.rows = 2, s.columns = 6, s.block_columns = 2;
  s.group_of = std::make_shared<const std::vector<i32>>(std::vector<i32>{2, 0, 0, 1, 2, 1});
  ASSERT_EQ(layout_fault(s), "");
  const u8 codes[] = {1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6};
  const float scales[] = {1, 10, 100, 2, 20, 200};
  const std::vector<float> want = {100, 2, 3, 40, 500, 60, 200, 4, 6, 80, 1000, 120};
  const u8* stored_scales = reinterpret_cast<const u8*>(scales);
  for (i64 first = 0; first < 12; first++) {
    std::vector<float> got(static_cast<std::size_t>(12 - first));
    const StoredRanges need = stored_ranges(s, first, 12);
    dequantize_items(s, first, 12, {codes + need.codes.begin, codes + need.codes.end},
                     {stored_scales + need.scales.begin, stored_scales + need.scales.end}, {}, DType::kF32,
                     reinterpret_cast<u8*>(got.data()));
    EXPECT_EQ(got, std::vector<float>(want.begin() + first, want.end())) << "from item " << first;
  }
  for (i64 c = 0; c < 6; c++) EXPECT_EQ(s.block_end(c), c == 1 ? 3 : c + 1);
}

TEST(Dequantize, ImpossibleGroupsOfColumns) {
  QuantLayout s;
  s.rows = 2, s.columns = 7, s.block_columns = 3;
  using Groups = std::vector<i32>;
  EXPECT_EQ(group_fault(s, Groups{2, 0, 1, 1, 0, 0, 1}), "");  // the last group has the column that is left
  EXPECT_EQ(group_fault(s, Groups{0, 0, 1, 1, 0, 1}), "groups of 6 columns, and 7 columns");
  EXPECT_EQ(group_fault(s, Groups{2, 0, 1, 3, 0, 0, 1}), "column 3 is in group 3, and the groups are 0 to 2");
  EXPECT_EQ(group_fault(s, Groups{2, 0, 1, -1, 0, 0, 1}),
            "column 3 is in group -1, and the groups are 0 to 2");
  EXPECT_EQ(group_fault(s, Groups{2, 0, 2, 1, 0, 0, 1}), "group 1 has 2 columns, and 3 share its scale");
  s.group_of = std::make_shared<const Groups>(Groups{2, 0, 2, 1, 0, 0, 1});
  EXPECT_EQ(layout_fault(s), "group 1 has 2 columns, and 3 share its scale");
  s.group_of = std::make_shared<const Groups>(Groups{2, 0, 1, 1, 0, 0, 1});
  EXPECT_EQ(layout_fault(s), "");
  s.block_rows = 2;
  EXPECT_NE(layout_fault(s), "");
}

TEST(Dequantize, SpelledOutValues) {
  EXPECT_EQ(e4m3_value(0x7e), 448);
  EXPECT_EQ(e4m3_value(0x01), 0x1p-9f);
  EXPECT_EQ(e4m3_value(0xb8), -1);
  EXPECT_NE(e4m3_value(0xff), e4m3_value(0xff));
  EXPECT_EQ(e5m2_value(0x7b), 57344);
  EXPECT_EQ(e8m0_value(0), 0x1p-127);
  EXPECT_EQ(e8m0_value(255), 0x1p128);
  // gpt-oss: a scale of 255 is 2^128, in values that bf16 has: 0, 2^127, infinity.
  QuantLayout s;
  s.codes = CodeFormat::kE2M1, s.scales = DType::kU8;
  s.rows = 1, s.columns = 4, s.block_columns = 32;
  const u8 codes[] = {0x18, 0x79}, scale = 255;
  u16 values[4];
  dequantize(s, {0, 1, 0, 4}, {codes, 2, &scale, 1, nullptr}, DType::kBF16, reinterpret_cast<u8*>(values), 8);
  EXPECT_EQ(values[0], 0x8000);
  EXPECT_EQ(values[1], 0x7f00);
  EXPECT_EQ(values[2], 0xff00);
  EXPECT_EQ(values[3], 0x7f80);
}

// Eleven codes of 3 bits, 0 to 7 and 0 to 2, in both packings: the eleventh is in two words, or begins one.
TEST(Dequantize, IntegersInBothPackings) {
  QuantLayout s;
  s.codes = CodeFormat::kPackedInt, s.int_bits = 3;
  s.rows = 1, s.columns = s.block_columns = 11;
  const float scale = 1;
  for (const bool whole_codes : {false, true}) {
    s.whole_codes = whole_codes;
    u32 words[2] = {0, 0};
    for (u32 c = 0; c < 11; c++) {
      const u32 bit = whole_codes ? c / 10 * 32 + c % 10 * 3 : c * 3;
      words[bit / 32] |= c % 8 << bit % 32;
      if (bit % 32 > 29) words[bit / 32 + 1] |= c % 8 >> (32 - bit % 32);
    }
    EXPECT_EQ(s.code_row_bytes(), 8);
    EXPECT_EQ(s.words_of(100), 10);
    EXPECT_EQ(s.words_of(96), whole_codes ? 10 : 9);
    float values[11];
    dequantize(s, {0, 1, 0, 11},
               {reinterpret_cast<const u8*>(words), 8, reinterpret_cast<const u8*>(&scale), 4, nullptr},
               DType::kF32, reinterpret_cast<u8*>(values), 44);
    for (int c = 0; c < 11; c++) EXPECT_EQ(values[c], static_cast<float>(c % 8 - 4)) << c;
  }
}

TEST(Dequantize, ImpossibleLayoutsAreNamed) {
  QuantLayout s;
  s.rows = 2, s.columns = 33;
  s.codes = CodeFormat::kE2M1;
  EXPECT_EQ(layout_fault(s), "a row of 33 values of 4 bits ends within a byte");
  s.columns = 32;
  EXPECT_EQ(layout_fault(s), "a block of 1 values of 4 bits ends within a byte");
  s.block_columns = 32, s.scales = DType::kI32;
  EXPECT_EQ(layout_fault(s), "scales of type int32 are not known");
  s.scales = DType::kF32, s.block_rows = 0;
  EXPECT_EQ(layout_fault(s), "a block has no items");
  s.block_rows = 1, s.codes = CodeFormat::kPackedInt, s.int_bits = 9;
  EXPECT_EQ(layout_fault(s), "integers of 9 bits are not known");
}

}  // namespace
}  // namespace mckpt::impl::dequantize_test
