// Integers as files store them: little-endian (safetensors, zip, most of a pickle), and big-endian for the
// doubles of a pickle. The address need not be aligned, so that a header can be read where it is in a buffer.
//
//   bytes 10 00 00 00 00 00 00 00        load_le<u64>: 16        load_be<u64>: 0x1000000000000000
//
// Nothing here checks a size: the caller has made sure that the bytes are there.
#pragma once

#include <bit>
#include <concepts>
#include <cstring>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

// std::byteswap comes only with C++23.
template <std::unsigned_integral T>
constexpr T byte_swapped(T v) {
  T out = 0;
  for (std::size_t i = 0; i < sizeof(T); i++) out = static_cast<T>(out << 8 | (v >> 8 * i & 0xff));
  return out;
}

// pre for both: sizeof(T) bytes are at p.
template <std::unsigned_integral T>
T load_le(const u8* p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  return std::endian::native == std::endian::little ? v : byte_swapped(v);
}

template <std::unsigned_integral T>
T load_be(const u8* p) {
  return byte_swapped(load_le<T>(p));
}

// Appends sizeof(T) bytes, the lowest first.
template <std::unsigned_integral T>
void append_le(std::vector<u8>& out, T v) {
  for (std::size_t i = 0; i < sizeof(T); i++) out.push_back(static_cast<u8>(v >> 8 * i));
}

}  // namespace mckpt::impl
