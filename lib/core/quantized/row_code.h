// Code that all row kernels share: the loop over the blocks of a stretch, and single values at the ends of
// vectors.
#pragma once

#include <algorithm>
#include <cstring>

#include "core/items/half_bits.h"
#include "core/quantized/codes.h"
#include "core/quantized/row_kernels.h"

namespace mckpt::impl {

// A value as it is written. A NaN loses sign and payload.
template <DType kTo>
inline void put_value(float value, u8* out) {
  if (value != value) value = kNaN;
  if constexpr (kTo == DType::kF32) {
    std::memcpy(out, &value, sizeof value);
  } else {
    u16 half = kTo == DType::kBF16 ? to_bf16(value) : to_f16(value);
    std::memcpy(out, &half, sizeof half);
  }
}

template <DType kTo>
inline constexpr i64 kItemBytes = kTo == DType::kF32 ? 4 : 2;

// Calls fn(item, count, scale) for the items of each block.
template <typename Fn>
[[gnu::always_inline]] inline void for_each_block(const RowStretch& row, Fn&& fn) {
  const float* scale = row.scales;
  for (i64 at = 0, in_block = row.skipped; at < row.items; in_block = 0, scale++) {
    i64 count = std::min(row.block_columns - in_block, row.items - at);
    fn(at, count, *scale);
    at += count;
  }
}

inline u8 nibble_at(const RowStretch& row, i64 item) {
  i64 nibble = item + row.odd;
  return row.codes[nibble / 2] >> nibble % 2 * 4 & 15;
}

// Items [begin, end) of one block, one by one.
template <DType kTo>
inline void put_bytes(const RowStretch& row, i64 begin, i64 end, float scale) {
  for (i64 i = begin; i < end; i++)
    put_value<kTo>((*row.levels)[row.codes[i]] * scale, row.out + i * kItemBytes<kTo>);
}
template <DType kTo>
inline void put_nibbles(const RowStretch& row, i64 begin, i64 end, float scale) {
  for (i64 i = begin; i < end; i++)
    put_value<kTo>((*row.levels)[nibble_at(row, i)] * scale, row.out + i * kItemBytes<kTo>);
}

}  // namespace mckpt::impl
