// Values become codes: each is divided by its block's scale in fp32 and gets the nearest code, ties to even.
//
//   values of a row   ....................|....................|....       blocks
//   pieces            ....256....|........|....256....|........|....       widened to fp32, coded, packed
#include "core/quantized/quantize.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "core/quantized/codes.h"
#include "core/quantized/row_kernels.h"
#include "core/quantized/scales.h"
#include "core/quantized/value_rows.h"

namespace mckpt::impl {
namespace {

// A piece of a block of one row.
struct Piece {
  const float* values;
  i64 column, items;
  double scale;
  int zero_point;
};

bool is_byte(CodeFormat codes) {
  return codes == CodeFormat::kE4M3 || codes == CodeFormat::kE5M2 || codes == CodeFormat::kInt8;
}

QuantLosses e5m2_codes(const float* values, i64 items, float scale, u8* codes) {
  QuantLosses losses;
  for (i64 i = 0; i < items; i++) {
    codes[i] = e5m2_code(values[i] / scale);
    losses.nan += is_e5m2_nan(codes[i]);
    losses.clamped += (codes[i] & 0x7f) == 0x7c;
  }
  return losses;
}

QuantLosses e2m3_codes(const float* values, i64 items, float scale, u8* codes) {
  constexpr float kKept = 7.75f;  // what is beyond does not round to the largest code
  QuantLosses losses;
  for (i64 i = 0; i < items; i++) {
    const float scaled = values[i] / scale;
    codes[i] = e2m3_code(scaled);
    losses.nan += scaled != scaled;
    losses.clamped += std::fabs(scaled) > kKept;
  }
  return losses;
}

QuantLosses codes_of(CodeFormat format, Processor processor, const float* values, i64 items, float scale,
                     u8* codes) {
  if (format == CodeFormat::kE5M2) return e5m2_codes(values, items, scale, codes);
  if (format == CodeFormat::kE2M3) return e2m3_codes(values, items, scale, codes);
  return (format == CodeFormat::kE4M3 ? e4m3_codes : e2m1_codes)(processor, values, items, scale, codes);
}

// Codes where the scale is zero, or the 2^128 of MXFP4, which fp32 cannot hold. A value of zero is a code of
// zero.
QuantLosses unusual_codes(const QuantLayout& s, const Piece& piece, u8* codes) {
  QuantLosses losses;
  for (i64 i = 0; i < piece.items; i++) {
    float scaled = piece.values[i];
    if (scaled != 0 || piece.scale != 0)
      scaled = static_cast<float>(static_cast<double>(scaled) / piece.scale);
    QuantLosses one = codes_of(s.codes, Processor::kAny, &scaled, 1, 1, codes + i);
    losses.nan += one.nan, losses.clamped += one.clamped;
  }
  return losses;
}

// Integers, with the offset of their format added where they are packed.
QuantLosses int_codes(const QuantLayout& s, const Piece& piece, u8* codes) {
  const float low = static_cast<float>(-(1 << (s.int_bits - 1))), high = -low - 1;
  const int offset = s.codes == CodeFormat::kInt8 ? 0 : 1 << (s.int_bits - 1);
  QuantLosses losses;
  for (i64 i = 0; i < piece.items; i++) {
    float scaled = piece.values[i];
    if (scaled != 0 || piece.scale != 0) scaled = scaled / static_cast<float>(piece.scale);
    float whole = std::nearbyint(scaled) + static_cast<float>(piece.zero_point);
    bool nan = whole != whole;
    losses.nan += nan;
    losses.clamped += whole < low || whole > high;
    codes[i] = static_cast<u8>((nan ? 0 : static_cast<int>(std::clamp(whole, low, high))) + offset);
  }
  return losses;
}

QuantLosses piece_codes(const QuantLayout& s, const Piece& piece, u8* codes) {
  if (has_integers(s)) return int_codes(s, piece, codes);
  float scale = static_cast<float>(piece.scale);
  if (scale == 0 || (std::isinf(scale) && !std::isinf(piece.scale))) return unusual_codes(s, piece, codes);
  return codes_of(s.codes, best_processor(), piece.values, piece.items, scale, codes);
}

// Codes of less than a byte, one after the other from a column on. pre: the row was zero.
void pack(const QuantLayout& s, i64 column, i64 items, const u8* codes, u8* row) {
  for (i64 i = 0; i < items; i++) {
    const i64 at = s.code_bit_of(column + i);
    u32 shifted = static_cast<u32>(codes[i]) << at % 8;
    row[at / 8] = static_cast<u8>(row[at / 8] | shifted);
    if (shifted > 255) row[at / 8 + 1] = static_cast<u8>(row[at / 8 + 1] | shifted >> 8);
  }
}

// Packs codes of four bits into bytes, the first code into the low half of a byte.
void pack_pairs(i64 items, const u8* codes, u8* to) {
  for (i64 i = 0; i < items / 2; i++) to[i] = static_cast<u8>(codes[2 * i] | codes[2 * i + 1] << 4);
  if (items % 2 != 0) to[items / 2] = codes[items - 1];
}

void put_codes(const QuantLayout& s, i64 column, i64 items, const u8* codes, u8* row) {
  if (is_byte(s.codes))
    std::memcpy(row + column, codes, static_cast<std::size_t>(items));
  else if (has_nibbles(s) && column % 2 == 0 && items % 2 == 0)
    pack_pairs(items, codes, row + column / 2);
  else
    pack(s, column, items, codes, row);
}

}  // namespace

void copy_code(const QuantLayout& s, i64 column, const u8* from, u8* to) {
  if (is_byte(s.codes)) return static_cast<void>(to[column] = from[column]);
  const i64 begin = s.code_bit_of(column);
  for (i64 bit = begin; bit < begin + code_bits(s); bit++) {
    const int mask = 1 << bit % 8;
    to[bit / 8] = static_cast<u8>((to[bit / 8] & ~mask) | (from[bit / 8] & mask));
  }
}

QuantLosses quantize(const QuantLayout& s, i64 first_row, i64 rows, const RowsOfValues& values,
                     const u8* scales, const u8* zero_points, u8* codes) {
  QuantLosses losses;
  std::array<float, kPieceItems> widened;
  std::array<u8, kPieceItems> piece_code;
  i64 scale_bytes = dtype_bytes(s.scales, 1), row_bytes = s.code_row_bytes();
  std::memset(codes, 0, static_cast<std::size_t>(rows * row_bytes));
  for (i64 r = 0; r < rows; r++) {
    i64 scale_row = s.scale_row_of(first_row + r) - s.scale_row_of(first_row);
    const u8* row_scales = scales + scale_row * s.scale_row_bytes();
    for (i64 column = 0, end = 0; column < s.columns; column = end) {
      const i64 block = s.block_of(column);
      end = s.block_end(column);
      Piece piece{widened.data(), column, 0, block_scale(s, row_scales + block * scale_bytes), 0};
      if (s.zero_points) piece.zero_point = zero_point_at(s, zero_points, first_row, first_row + r, block);
      for (; piece.column < end; piece.column += piece.items) {
        piece.items = std::min(kPieceItems, end - piece.column);
        widen_values(values, r, piece.column, piece.items, widened.data());
        QuantLosses lost = piece_codes(s, piece, piece_code.data());
        losses.nan += lost.nan, losses.clamped += lost.clamped;
        put_codes(s, piece.column, piece.items, piece_code.data(), codes + r * row_bytes);
      }
    }
  }
  return losses;
}

}  // namespace mckpt::impl
