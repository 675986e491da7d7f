// Values of single codes and codes of single values; the arithmetic that everything else is compared with.
//
//   E4M3   s eeee mmm, bias 7: up to 448 (0x7e), subnormals in steps of 2^-9, 0x7f and 0xff NaN
//   E2M3   s ee mmm: 0 .125 .. .875, 1 1.125 .. 1.875, 2 .. 3.75, 4 .. 7.5
//   E2M1   s ee m: 0 .5 1 1.5 2 3 4 6
//   E8M0   2^(b-127); b = 0 is 2^-127, 255 is NaN (of MXFP4, see block_scale)
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "core/base/int.h"
#include "core/items/half_bits.h"

namespace mckpt::impl {

inline constexpr float kE4M3Max = 448, kE2M3Max = 7.5f, kE2M1Max = 6;
inline constexpr std::array<float, 8> kE2M1Values = {0, .5f, 1, 1.5f, 2, 3, 4, 6};
inline constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

inline bool is_e4m3_nan(u8 code) { return (code & 0x7f) == 0x7f; }
inline bool is_e5m2_nan(u8 code) { return (code & 0x7f) > 0x7c; }

inline float e4m3_value(u8 code) {
  if (is_e4m3_nan(code)) return kNaN;
  // fp16 has the same bits one place lower, and a bias that is 8 greater.
  return from_f16(static_cast<u16>((code & 0x80) << 8 | (code & 0x7f) << 7)) * 0x1p8f;
}

// The nearest code, ties to even; what is beyond the largest finite code is infinity, a NaN is 0x7e. Rounded
// to fp16 first: a value that lies between two codes may get the farther one.
inline u8 e5m2_code(float value) {
  if (value != value) return 0x7e;
  u32 half = to_f16(value), magnitude = half & 0x7fff;
  return static_cast<u8>((half >> 8 & 0x80) | ((magnitude + 0x7f + (magnitude >> 8 & 1)) >> 8));
}

inline float e5m2_value(u8 code) { return from_f16(static_cast<u16>(code << 8)); }

inline float e2m1_value(u8 nibble) { return std::copysign(kE2M1Values[nibble & 7], nibble & 8 ? -1.f : 1.f); }

inline float e2m3_value(u8 code) {
  int exponent = code >> 3 & 3, mantissa = code & 7;
  float value =
      exponent == 0 ? static_cast<float>(mantissa) : static_cast<float>((8 + mantissa) << (exponent - 1));
  return std::copysign(value / 8, code & 32 ? -1.f : 1.f);
}

// The nearest code, ties to the code with an even mantissa; beyond 7.5 the code of 7.5; the sign of zero is
// kept. A NaN has no code and is +0.
inline u8 e2m3_code(float value) {
  if (value != value) return 0;
  float magnitude = std::fabs(value);
  int exponent = magnitude >= 4 ? 2 : magnitude >= 2 ? 1 : 0;  // steps of 1/8, 1/4, 1/2
  // Rounding up to the next power of two gives the first code of the next exponent.
  int steps =
      static_cast<int>(std::nearbyint(std::min(magnitude, kE2M3Max) * static_cast<float>(8 >> exponent)));
  int code = exponent == 0 ? steps : 8 * exponent + steps;
  return static_cast<u8>(code | (std::signbit(value) ? 32 : 0));
}

// A double, because 2^128 (the byte 255 of MXFP4) does not fit fp32.
inline double e8m0_value(u8 exponent) {
  return std::bit_cast<double>(static_cast<u64>(exponent + 1023 - 127) << 52);
}

// The next two compute all cases and choose with masks, and compare bits: compilers make vectors of that, but
// not of branches around float arithmetic.
inline i32 choose(bool first, i32 a, i32 b) {
  i32 mask = -static_cast<i32>(first);
  return (a & mask) | (b & ~mask);
}

// The nearest code, ties to even; beyond 448 the code of 448; a NaN is 0x7f.
inline u8 e4m3_code(float value) {
  i32 bits = std::bit_cast<i32>(value), magnitude = bits & 0x7fffffff, sign = bits >> 24 & 0x80;
  // Below 2^-6, adding 2^14 leaves multiples of 2^-9 in the low bits.
  i32 small = std::bit_cast<i32>(std::bit_cast<float>(magnitude) + 0x1p14f) - 0x46800000;
  i32 normal = (magnitude - (120 << 23) + 0x7ffff + (magnitude >> 20 & 1)) >> 20;
  i32 code = choose(magnitude < 0x3c800000, small, normal);
  code = choose(magnitude >= std::bit_cast<i32>(kE4M3Max), 0x7e, code) | sign;
  return static_cast<u8>(choose(magnitude > 0x7f800000, 0x7f, code));
}

// The nearest code, ties to the code with an even mantissa; beyond 6 the code of 6; the sign of zero is kept.
// A NaN has no code and is +0.
inline u8 e2m1_code(float value) {
  i32 bits = std::bit_cast<i32>(value), m = bits & 0x7fffffff, sign = bits >> 28 & 8;
  i32 code = (m > std::bit_cast<i32>(.25f)) + (m >= std::bit_cast<i32>(.75f)) +
             (m > std::bit_cast<i32>(1.25f)) + (m >= std::bit_cast<i32>(1.75f)) +
             (m > std::bit_cast<i32>(2.5f)) + (m >= std::bit_cast<i32>(3.5f)) + (m > std::bit_cast<i32>(5.f));
  return static_cast<u8>(choose(m > 0x7f800000, 0, code | sign));
}

}  // namespace mckpt::impl
