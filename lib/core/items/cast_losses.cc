// Counts values that a cast made infinite or zero, by comparing how many there were before and after. Casts
// keep infinities, zeros and NaN, so the difference is what the cast made; no value is cast twice for the
// count.
//
//   float32  70000  1e-10  0  inf     ->     float16  inf  0  0  inf          1 became infinite, 1 became zero
#include "core/items/cast_losses.h"

#include <algorithm>
#include <cstring>

#include "core/items/dtype.h"
#include "core/items/item_cast.h"

namespace mckpt::impl {
namespace {

// Counters are as wide as the items, so that the loop is vectorised without widening; blocks are so short
// that the counters do not overflow.
constexpr i64 kBlock = 1 << 14;

template <typename Bits>
CastLosses count(const u8* values, i64 items, Bits infinity) {
  constexpr Bits kMagnitude = static_cast<Bits>(static_cast<Bits>(~Bits{0}) >> 1);
  CastLosses out;
  for (i64 begin = 0; begin < items; begin += kBlock) {
    i64 end = std::min(items, begin + kBlock);
    Bits infinite = 0, zero = 0;
    for (i64 i = begin; i < end; i++) {
      Bits b;
      std::memcpy(&b, values + i * static_cast<i64>(sizeof b), sizeof b);
      b = static_cast<Bits>(b & kMagnitude);
      infinite = static_cast<Bits>(infinite + (b == infinity));
      zero = static_cast<Bits>(zero + (b == 0));
    }
    out.infinite += static_cast<i64>(infinite), out.zero += static_cast<i64>(zero);
  }
  return out;
}

// The bits of infinity of each type, without the sign; NaN is larger than infinity as an integer, so it is
// not counted.
CastLosses count(DType dtype, const u8* values, i64 items) {
  switch (dtype) {
    case DType::kBF16:
      return count<u16>(values, items, 0x7f80);
    case DType::kF16:
      return count<u16>(values, items, 0x7c00);
    case DType::kF32:
      return count<u32>(values, items, 0x7f800000);
    default:
      return count<u64>(values, items, 0x7ff0000000000000);
  }
}

// Ranges of the exponents, subnormal values included: the range of fp16 is inside the range of bf16, which is
// inside fp32's.
int range_of(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return 0;
    case DType::kBF16:
      return 1;
    case DType::kF32:
      return 2;
    default:
      return 3;
  }
}

}  // namespace

bool may_lose(const ItemCast& c) {
  if (c.identity() || !is_castable(c.from)) return false;
  return range_of(c.via) < range_of(c.from) || range_of(c.to) < range_of(c.via);
}

// Casts keep infinities and zeros, so additional ones were made by the cast.
CastLosses cast_losses(const ItemCast& c, const u8* from, const u8* to, i64 items) {
  CastLosses before = count(c.from, from, items), after = count(c.to, to, items);
  bool moved = c.add_before != 0 || c.add_after != 0;
  return {after.infinite - before.infinite, moved ? 0 : after.zero - before.zero};
}

}  // namespace mckpt::impl
