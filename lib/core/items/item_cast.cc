// Casts and additions over blocks of values, one loop for each pair of types, which the compiler vectorises.
// A cast through a third type goes through a buffer of 1024 items, so that no copy of the tensor is made.
#include "core/items/item_cast.h"
#include "core/base/error.h"
#include "core/items/half_bits.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace mckpt::impl {
namespace {

// Reading and writing one item as float. Doubles pass through float as well, as in torch, except into
// doubles.
struct Bf16 {
  using Bits = u16;
  static float read(Bits b) { return from_bf16(b); }
  static Bits write(float f) { return to_bf16(f); }
};
struct F16 {
  using Bits = u16;
  static float read(Bits b) { return from_f16(b); }
  static Bits write(float f) { return to_f16(f); }
};
struct F32 {
  using Bits = u32;
  static float read(Bits b) { return std::bit_cast<float>(b); }
  static Bits write(float f) { return std::bit_cast<u32>(f); }
};
struct F64 {
  using Bits = u64;
  static float read(Bits b) { return static_cast<float>(std::bit_cast<double>(b)); }
  static Bits write(float f) { return std::bit_cast<u64>(static_cast<double>(f)); }
};

template <typename From, typename To>
void cast(const u8* from, u8* to, i64 items) {
  for (i64 i = 0; i < items; i++) {
    typename From::Bits b;
    std::memcpy(&b, from + i * static_cast<i64>(sizeof b), sizeof b);
    typename To::Bits r = To::write(From::read(b));
    std::memcpy(to + i * static_cast<i64>(sizeof r), &r, sizeof r);
  }
}

// Adds in doubles where one of the types is double, else in floats, which hold the values of all others.
template <typename From, typename To>
void cast_sum(const u8* from, u8* to, i64 items, float addend) {
  constexpr bool kFrom64 = std::is_same_v<From, F64>, kTo64 = std::is_same_v<To, F64>;
  for (i64 i = 0; i < items; i++) {
    typename From::Bits b;
    typename To::Bits r;
    std::memcpy(&b, from + i * static_cast<i64>(sizeof b), sizeof b);
    if constexpr (kFrom64 || kTo64) {
      double value = 0;
      if constexpr (kFrom64)
        value = std::bit_cast<double>(b);
      else
        value = static_cast<double>(From::read(b));
      double sum = value + static_cast<double>(addend);
      if constexpr (kTo64)
        r = std::bit_cast<u64>(sum);
      else
        r = To::write(static_cast<float>(sum));
    } else {
      r = To::write(From::read(b) + addend);
    }
    std::memcpy(to + i * static_cast<i64>(sizeof r), &r, sizeof r);
  }
}

// Calls fn with the type of the dtype. pre: castable.
template <typename Fn>
void with_type(DType dtype, Fn&& fn) {
  switch (dtype) {
    case DType::kBF16:
      return fn(Bf16{});
    case DType::kF16:
      return fn(F16{});
    case DType::kF32:
      return fn(F32{});
    default:
      return fn(F64{});
  }
}

// One cast of a block, without a constant.
void cast_items(DType from_type, DType to_type, const u8* from, u8* to, i64 items) {
  if (from_type == to_type) {
    if (from != to) std::memcpy(to, from, static_cast<std::size_t>(dtype_bytes(from_type, items)));
    return;
  }
  with_type(from_type, [&](auto f) {
    with_type(to_type, [&](auto t) { cast<decltype(f), decltype(t)>(from, to, items); });
  });
}

// A cast with a constant added in the wider type.
void sum_items(DType from_type, DType to_type, float addend, const u8* from, u8* to, i64 items) {
  if (addend == 0) return cast_items(from_type, to_type, from, to, items);
  with_type(from_type, [&](auto f) {
    with_type(to_type, [&](auto t) { cast_sum<decltype(f), decltype(t)>(from, to, items, addend); });
  });
}

constexpr i64 kRoundedBlock = 512;  // items

// Items that adding and subtracting the constant changes. pre: at most kRoundedBlock items
i64 rounded_by(DType from, DType to, float addend, const u8* values, i64 items) {
  using Block = std::array<u8, kRoundedBlock * sizeof(double)>;
  Block sums, back, plain;
  DType narrow = dtype_info(to).bits < dtype_info(from).bits ? to : from;
  sum_items(from, to, addend, values, sums.data(), items);
  sum_items(to, narrow, -addend, sums.data(), back.data(), items);
  cast_items(from, narrow, values, plain.data(), items);
  std::size_t item = static_cast<std::size_t>(dtype_bytes(narrow, 1));
  i64 rounded = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(items); i++)
    rounded += std::memcmp(back.data() + i * item, plain.data() + i * item, item) != 0;
  return rounded;
}

}  // namespace

ItemCast no_cast(DType dtype) { return {dtype, dtype, dtype, 0, 0}; }

bool is_castable(DType d) {
  return d == DType::kBF16 || d == DType::kF16 || d == DType::kF32 || d == DType::kF64;
}

void check_cast(const ItemCast& c) {
  if (c.identity()) return;
  for (DType d : {c.from, c.via, c.to})
    if (!is_castable(d))
      throw Error(Code::kBadCast, cat("values of type ", dtype_name(d), " cannot be cast"))
          .expected("bfloat16, float16, float32 or float64")
          .found(cat(dtype_name(c.from), " to ", dtype_name(c.to)));
}

// A cast through a third type that equals one of the ends is one step.
void cast_items(const ItemCast& c, const u8* from, u8* to, i64 items) {
  if (c.via == c.from && c.add_before == 0) return sum_items(c.via, c.to, c.add_after, from, to, items);
  if (c.via == c.to && c.add_after == 0) return sum_items(c.from, c.via, c.add_before, from, to, items);
  // Through a buffer that stays in the cache.
  constexpr i64 kBlock = 1024;
  alignas(16) u8 between[kBlock * 8];
  i64 from_bytes = dtype_info(c.from).bits / 8, to_bytes = dtype_info(c.to).bits / 8;
  for (i64 at = 0; at < items; at += kBlock) {
    i64 n = std::min(kBlock, items - at);
    sum_items(c.from, c.via, c.add_before, from + at * from_bytes, between, n);
    sum_items(c.via, c.to, c.add_after, between, to + at * to_bytes, n);
  }
}

i64 rounded_items(const ItemCast& c, const u8* from, i64 items) {
  if (c.add_before == 0 && c.add_after == 0) return 0;
  std::array<u8, kRoundedBlock * sizeof(double)> between;
  i64 rounded = 0;
  for (i64 at = 0; at < items; at += kRoundedBlock) {
    const u8* block = from + dtype_bytes(c.from, at);
    i64 count = std::min(kRoundedBlock, items - at);
    if (c.add_before != 0) rounded += rounded_by(c.from, c.via, c.add_before, block, count);
    if (c.add_after == 0) continue;
    sum_items(c.from, c.via, c.add_before, block, between.data(), count);
    rounded += rounded_by(c.via, c.to, c.add_after, between.data(), count);
  }
  return rounded;
}

// pre: castable.
float value_of(DType dtype, const u8* item) {
  float out = 0;
  cast_items(dtype, DType::kF32, item, reinterpret_cast<u8*>(&out), 1);
  return out;
}

}  // namespace mckpt::impl
