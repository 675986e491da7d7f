// Stored scales and zero points as numbers.
#include "core/quantized/scales.h"

#include <bit>
#include <cstring>

#include "core/items/half_bits.h"
#include "core/quantized/codes.h"

namespace mckpt::impl {
namespace {

u16 load16(const u8* p) {
  u16 v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

float load_float(const u8* p) {
  float v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

// Half of 2^(b-127), which fp32 has for every b.
float half_e8m0(u8 b) {
  return std::bit_cast<float>(b >= 2 ? static_cast<u32>(b - 1) << 23 : 0x200000u << b);
}

}  // namespace

bool scales_are_halved(const QuantLayout& s) {
  return s.codes == CodeFormat::kE2M1 && (s.scales == DType::kF8E8M0 || s.scales == DType::kU8);
}

double scale_value(DType scales, const u8* stored) {
  switch (scales) {
    case DType::kBF16:
      return static_cast<double>(from_bf16(load16(stored)));
    case DType::kF16:
      return static_cast<double>(from_f16(load16(stored)));
    case DType::kF8E4M3:
      return static_cast<double>(e4m3_value(*stored));
    case DType::kF8E8M0:
    case DType::kU8:
      return *stored == 255 ? static_cast<double>(kNaN) : e8m0_value(*stored);
    default:
      return static_cast<double>(load_float(stored));
  }
}

double block_scale(const QuantLayout& s, const u8* stored) {
  if (scales_are_halved(s)) return e8m0_value(*stored);
  double scale = scale_value(s.scales, stored);
  if (s.tensor_rule == TensorScale::kNone) return scale;
  float single = static_cast<float>(scale);
  single = s.tensor_rule == TensorScale::kTimes ? single * s.tensor_scale : single / s.tensor_scale;
  if (s.tensor_rule == TensorScale::kDivideToBf16) single = from_bf16(to_bf16(single));
  return static_cast<double>(single);
}

void widen_scales(const QuantLayout& s, const u8* stored, i64 count, float* scales) {
  if (scales_are_halved(s)) {
    for (i64 i = 0; i < count; i++) scales[i] = half_e8m0(stored[i]);
    return;
  }
  i64 bytes = dtype_bytes(s.scales, 1);
  for (i64 i = 0; i < count; i++) scales[i] = static_cast<float>(block_scale(s, stored + i * bytes));
}

int zero_point_at(const QuantLayout& s, const u8* words, i64 first_row, i64 row, i64 group) {
  if (s.zero_points_are_bytes) {
    const i64 scale_row = s.scale_row_of(row) - s.scale_row_of(first_row);
    return static_cast<std::int8_t>(words[scale_row * s.scale_columns() + group]);
  }
  i64 at = s.bit_of(row) - s.bit_of(first_row) / 32 * 32;
  int value = 0;
  for (int i = 0; i < s.int_bits; i++, at++) {
    const u8* word = words + (at / 32 * s.scale_columns() + group) * 4;
    value |= (word[at % 32 / 8] >> at % 8 & 1) << i;
  }
  return value - (1 << (s.int_bits - 1));
}

}  // namespace mckpt::impl
