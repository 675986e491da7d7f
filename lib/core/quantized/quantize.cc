// Values become codes: each is divided by its block's scale in fp32 and gets the nearest code, ties to even.
#include "core/quantized/quantize.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/items/half_bits.h"
#include "core/quantized/codes.h"
#include "core/quantized/scales.h"
#include "core/quantized/value_rows.h"

namespace mckpt::impl {
namespace {

// A value of zero is a code of zero even where the scale is zero.
float quotient(float value, double scale) {
  if (value == 0 && scale == 0) return value;
  return static_cast<float>(static_cast<double>(value) / scale);
}

// The integer as it is stored, with the offset of its format added.
u32 int_code(const QuantLayout& s, float scaled, int zero_point) {
  int low = -(1 << (s.int_bits - 1)), high = -low - 1;
  if (scaled != scaled) return static_cast<u32>(-low);
  float whole = std::nearbyint(scaled) + static_cast<float>(zero_point);
  int code = static_cast<int>(std::clamp(whole, static_cast<float>(low), static_cast<float>(high)));
  return static_cast<u32>(code - low);
}

// The largest magnitude that rounds to the largest code: beyond it, a value is lost.
float largest_kept(const QuantLayout& s, int zero_point) {
  if (s.codes == CodeFormat::kE4M3) return 464;
  if (s.codes == CodeFormat::kE2M1) return 7;
  return static_cast<float>(1 << (s.int_bits - 1)) + .5f + static_cast<float>(std::abs(zero_point));
}

void put_bits(u8* row, i64 at, u32 code) {
  row[at / 8] = static_cast<u8>(row[at / 8] | code << at % 8);
  if (at % 8 != 0 && code >> (8 - at % 8) != 0)
    row[at / 8 + 1] = static_cast<u8>(row[at / 8 + 1] | code >> (8 - at % 8));
}

}  // namespace

float value_at(const ValueRows& values, i64 row, i64 column) {
  const u8* at = values.data + row * values.row_bytes + dtype_bytes(values.type, column);
  if (values.type == DType::kF32) {
    float value;
    std::memcpy(&value, at, sizeof value);
    return value;
  }
  u16 half;
  std::memcpy(&half, at, sizeof half);
  return values.type == DType::kBF16 ? from_bf16(half) : from_f16(half);
}

float amax_of(const ValueRows& values, i64 row, i64 column, i64 columns) {
  float amax = 0;
  for (i64 c = column; c < column + columns; c++) {
    float magnitude = std::fabs(value_at(values, row, c));
    amax = magnitude != magnitude ? INFINITY : std::max(amax, magnitude);
  }
  return amax;
}

QuantLosses quantize(const QuantLayout& s, i64 first_row, i64 rows, const ValueRows& values, const u8* scales,
                     const u8* zero_points, u8* codes) {
  QuantLosses losses;
  i64 scale_bytes = dtype_bytes(s.scales, 1), row_bytes = s.code_row_bytes();
  std::memset(codes, 0, static_cast<std::size_t>(rows * row_bytes));
  for (i64 r = 0; r < rows; r++) {
    i64 scale_row = s.scale_row_of(first_row + r) - s.scale_row_of(first_row);
    u8* row = codes + r * row_bytes;
    for (i64 c = 0; c < s.columns; c++) {
      i64 block = c / s.block_columns;
      double scale = block_scale(s, scales + scale_row * s.scale_row_bytes() + block * scale_bytes);
      float scaled = quotient(value_at(values, r, c), scale);
      int zero = s.zero_points ? zero_point_at(s, zero_points, first_row, first_row + r, block) : 0;
      losses.nan += scaled != scaled;
      losses.clamped += std::fabs(scaled) > largest_kept(s, zero);
      if (s.codes == CodeFormat::kE4M3) {
        row[c] = e4m3_code(scaled);
      } else if (s.codes == CodeFormat::kE2M1) {
        row[c / 2] = static_cast<u8>(row[c / 2] | e2m1_code(scaled) << c % 2 * 4);
      } else {
        put_bits(row, c * s.int_bits, int_code(s, scaled, zero));
      }
    }
  }
  return losses;
}

}  // namespace mckpt::impl
