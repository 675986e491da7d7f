// Loops that compilers make vectors of: each body is compiled for any processor and once more for those with
// AVX2.
#include "core/quantized/value_rows.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "core/items/item_cast.h"
#include "core/quantized/codes.h"

namespace mckpt::impl {
namespace {

// Magnitudes have the order of their bits; a NaN has higher bits than infinity.
[[gnu::always_inline]] inline i32 largest_bits(const float* values, i64 items) {
  i32 largest = 0;
  for (i64 i = 0; i < items; i++) largest = std::max(largest, std::bit_cast<i32>(values[i]) & 0x7fffffff);
  return largest;
}
i32 largest_plain(const float* values, i64 items) { return largest_bits(values, items); }
MCKPT_WITH_AVX2 i32 largest_avx2(const float* values, i64 items) { return largest_bits(values, items); }

// Magnitudes above `kept` would round to a code beyond the largest: they are counted as lost.
template <typename Code>
[[gnu::always_inline]] inline QuantLosses codes_of(const float* values, i64 items, float scale, float kept,
                                                   u8* codes, Code code) {
  i32 nan = 0, beyond = 0;
  for (i64 i = 0; i < items; i++) {
    float scaled = values[i] / scale;
    i32 magnitude = std::bit_cast<i32>(scaled) & 0x7fffffff;
    nan += magnitude > 0x7f800000;
    beyond += magnitude > std::bit_cast<i32>(kept);
    codes[i] = code(scaled);
  }
  return {nan, beyond - nan};  // a NaN is beyond everything
}

constexpr float kE4M3Kept = 464, kE2M1Kept = 7;

QuantLosses e4m3_plain(const float* values, i64 items, float scale, u8* codes) {
  return codes_of(values, items, scale, kE4M3Kept, codes, [](float v) { return e4m3_code(v); });
}
MCKPT_WITH_AVX2 QuantLosses e4m3_avx2(const float* values, i64 items, float scale, u8* codes) {
  return codes_of(values, items, scale, kE4M3Kept, codes, [](float v) { return e4m3_code(v); });
}
QuantLosses e2m1_plain(const float* values, i64 items, float scale, u8* codes) {
  return codes_of(values, items, scale, kE2M1Kept, codes, [](float v) { return e2m1_code(v); });
}
MCKPT_WITH_AVX2 QuantLosses e2m1_avx2(const float* values, i64 items, float scale, u8* codes) {
  return codes_of(values, items, scale, kE2M1Kept, codes, [](float v) { return e2m1_code(v); });
}

}  // namespace

void widen_values(const RowsOfValues& values, i64 row, i64 column, i64 items, float* to) {
  const u8* at = values.data + row * values.row_bytes + dtype_bytes(values.type, column);
  cast_items({values.type, values.type, DType::kF32, 0, 0}, at, reinterpret_cast<u8*>(to), items);
}

float amax_of(const RowsOfValues& values, i64 row, i64 column, i64 columns) {
  std::array<float, kPieceItems> piece;
  auto largest = best_processor() == Processor::kAny ? largest_plain : largest_avx2;
  i32 bits = 0;
  for (i64 at = 0; at < columns; at += kPieceItems) {
    i64 items = std::min(kPieceItems, columns - at);
    widen_values(values, row, column + at, items, piece.data());
    bits = std::max(bits, largest(piece.data(), items));
  }
  return bits >= 0x7f800000 ? INFINITY : std::bit_cast<float>(bits);
}

QuantLosses e4m3_codes(Processor processor, const float* values, i64 items, float scale, u8* codes) {
  return (processor == Processor::kAny ? e4m3_plain : e4m3_avx2)(values, items, scale, codes);
}

QuantLosses e2m1_codes(Processor processor, const float* values, i64 items, float scale, u8* codes) {
  return (processor == Processor::kAny ? e2m1_plain : e2m1_avx2)(values, items, scale, codes);
}

}  // namespace mckpt::impl
