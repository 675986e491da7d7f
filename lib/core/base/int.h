// The integer types: every count, size and offset is an i64. Arithmetic on values that come from outside uses
// the checked functions, which throw instead of wrapping.
#pragma once

#include <cstdint>

namespace mckpt::impl {

using i32 = std::int32_t;
using i64 = std::int64_t;
using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

[[noreturn]] void throw_overflow(i64 a, const char* op, i64 b, const char* what);  // in error.cc

// Throws Error(kSizeOverflow) with `what` in its message if the result does not fit 63 bits.
inline i64 checked_add(i64 a, i64 b, const char* what) {
  i64 r;
  if (__builtin_add_overflow(a, b, &r)) throw_overflow(a, "+", b, what);
  return r;
}

inline i64 checked_sub(i64 a, i64 b, const char* what) {
  i64 r;
  if (__builtin_sub_overflow(a, b, &r)) throw_overflow(a, "-", b, what);
  return r;
}

inline i64 checked_mul(i64 a, i64 b, const char* what) {
  i64 r;
  if (__builtin_mul_overflow(a, b, &r)) throw_overflow(a, "*", b, what);
  return r;
}

// pre: a >= 0, b > 0.
constexpr i64 ceil_div(i64 a, i64 b) { return a / b + (a % b != 0); }
inline i64 round_up(i64 a, i64 b, const char* what) { return checked_mul(ceil_div(a, b), b, what); }

}  // namespace mckpt::impl
