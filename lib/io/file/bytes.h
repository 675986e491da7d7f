// Integers as they lie in files: little-endian (and big-endian for the few that need it), at any address.
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

// pre: sizeof(T) bytes lie at p.
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

template <std::unsigned_integral T>
void append_le(std::vector<u8>& out, T v) {
  for (std::size_t i = 0; i < sizeof(T); i++) out.push_back(static_cast<u8>(v >> 8 * i));
}

}  // namespace mckpt::impl
