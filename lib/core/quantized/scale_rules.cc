// Scales for blocks of values, by the largest magnitude in each.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "core/items/half_bits.h"
#include "core/quantized/codes.h"
#include "core/quantized/quantize.h"
#include "core/quantized/value_rows.h"

namespace mckpt::impl {
namespace {

// e for the smallest 2^e >= value; pre: positive and finite.
int ceil_log2(float value) {
  int e = 0;
  float mantissa = std::frexp(value, &e);  // 0.5 <= mantissa < 1
  return mantissa == 0.5f ? e - 1 : e;
}

float amax_scale(float amax) { return std::max(amax, from_bf16(to_bf16(1e-12f))) / kE4M3Max; }

// The exponent of a power of two, for any rule but kAmax.
int power_of(ScaleRule rule, float amax) {
  if (rule == ScaleRule::kPowerOfTwo) return amax == 0 ? 0 : ceil_log2(amax / kE4M3Max);
  return amax == 0 ? -127 : std::ilogb(amax) - 2;
}

void store_scale(DType type, ScaleRule rule, float amax, u8* to) {
  bool is_power = rule != ScaleRule::kAmax;
  if (type == DType::kF8E8M0 || type == DType::kU8) {
    // An infinite or NaN block gets the largest scale; quantize counts what does not fit it.
    int e = std::isfinite(amax) ? power_of(rule, amax) : 127;
    *to = static_cast<u8>(std::clamp(e + 127, 0, 254));
    return;
  }
  float scale = !std::isfinite(amax) ? amax
                : is_power           ? std::ldexp(1.f, power_of(rule, amax))
                                     : amax_scale(amax);
  if (type == DType::kF32) {
    std::memcpy(to, &scale, sizeof scale);
  } else {
    u16 half = type == DType::kBF16 ? to_bf16(scale) : to_f16(scale);
    std::memcpy(to, &half, sizeof half);
  }
}

}  // namespace

void make_scales(const QuantLayout& s, ScaleRule rule, i64 first_row, i64 rows, const RowsOfValues& values,
                 u8* scales) {
  i64 scale_bytes = dtype_bytes(s.scales, 1);
  for (i64 r = 0; r < rows;) {
    // Rows of this row of blocks; the last one of a matrix is cut.
    i64 in_matrix = (first_row + r) % s.rows;
    i64 count = std::min(s.block_rows, s.rows - in_matrix);
    for (i64 block = 0; block < s.scale_columns(); block++) {
      i64 column = block * s.block_columns, columns = std::min(s.block_columns, s.columns - column);
      float amax = 0;
      for (i64 i = 0; i < count; i++) amax = std::max(amax, amax_of(values, r + i, column, columns));
      store_scale(s.scales, rule, amax, scales + block * scale_bytes);
    }
    scales += s.scale_row_bytes();
    r += count;
  }
}

}  // namespace mckpt::impl
