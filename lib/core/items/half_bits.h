// The 16-bit floats as bits: conversions from and to fp32, rounding to nearest, ties to even.
//
//   bf16   the upper half of fp32; the lower half is rounded away: 1.00390625 -> 1
//   fp16   5 bits of exponent: from 65520 on a value is infinity, below 2^-14 it is a multiple of 2^-24
//
// They work on bits, except that subnormal fp16 values are rounded by a float addition, which needs the
// processor's default rounding mode. Narrowing a NaN keeps the upper bits of its payload and makes it quiet.
#pragma once

#include <bit>

#include "core/base/int.h"

namespace mckpt::impl {

inline float from_bf16(u16 h) { return std::bit_cast<float>(static_cast<u32>(h) << 16); }

inline u16 to_bf16(float f) {
  u32 bits = std::bit_cast<u32>(f);
  u32 rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  u32 quiet_nan = bits >> 16 | 0x40;
  return static_cast<u16>((bits & 0x7fffffff) > 0x7f800000 ? quiet_nan : rounded);
}

inline float from_f16(u16 h) {
  u32 sign = static_cast<u32>(h & 0x8000) << 16, exponent = h >> 10 & 31, mantissa = h & 0x3ff;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000 | mantissa << 13);
  if (exponent == 0)
    return std::bit_cast<float>(sign | std::bit_cast<u32>(static_cast<float>(mantissa) * 0x1p-24f));
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
}

inline u16 to_f16(float f) {
  u32 bits = std::bit_cast<u32>(f), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return static_cast<u16>(sign | 0x7e00 | (magnitude >> 13 & 0x3ff));  // NaN
  if (magnitude >= 0x477ff000) return static_cast<u16>(sign | 0x7c00);  // beyond 65504: infinity
  if (magnitude < 0x38800000) {
    // Subnormal: adding 0.5 leaves the value, rounded to multiples of 2^-24, in the low bits.
    u32 aligned = std::bit_cast<u32>(std::bit_cast<float>(magnitude) + 0.5f);
    return static_cast<u16>(sign | (aligned - 0x3f000000));
  }
  u32 rounded = magnitude - (112u << 23) + 0xfff + (magnitude >> 13 & 1);
  return static_cast<u16>(sign | rounded >> 13);
}

}  // namespace mckpt::impl
