// Values of quantised tensors, of any range of items or any rectangle:
//
//   value = narrow( f32(code) * f32(scale) )        one rounding in fp32, one to bf16, fp16 or fp32
//
// Bit for bit what the reference implementations give (docs/formats/quantized.md has where they differ
// among themselves). A NaN is written as the quiet NaN without payload (0x7fc0 in bf16), whatever made it.
#pragma once

#include <span>

#include "core/base/int.h"
#include "core/items/dtype.h"
#include "core/quantized/layout.h"

namespace mckpt::impl {

// Rows are counted through all matrices of a stack.
struct ValueTile {
  i64 first_row = 0, rows = 0, first_column = 0, columns = 0;
};

// Stored bytes in memory; nothing needs to be aligned.
struct StoredBytes {
  const u8* codes = nullptr;   // the byte that has the code of the tile's first row and column
  i64 code_row_bytes = 0;      // distance of rows in this memory
  const u8* scales = nullptr;  // the scale of the tile's first block, first_block_from() of its first column
  i64 scale_row_bytes = 0;     // distance of rows of scales in this memory
  const u8* zero_points =
      nullptr;  // the row of words that has the first row's zero points, from its first column
};

// The types that values can have: bf16, fp16, fp32.
bool is_dequantized_type(DType to);

// The place of a part of a tile in the tile's bytes.
StoredBytes stored_at(const QuantLayout& layout, const ValueTile& tile, const StoredBytes& stored,
                      const ValueTile& part);

// Writes value [r, c] of the tile to out + r * out_row_bytes + c * (bytes of an item).
// pre: no layout fault; the tile is in the tensor; `out` does not overlap what is read.
void dequantize(const QuantLayout& layout, const ValueTile& tile, const StoredBytes& stored, DType to,
                u8* out, i64 out_row_bytes);

// Turned: value [r, c] goes to out + c * out_row_bytes + r * (bytes of an item). gpt-oss: the stored [2I, H]
// of an expert becomes [H, 2I]. pre: also in memory are the codes and scales of the columns around the tile,
// from a multiple of 16 to the next, as far as the tensor has them.
void dequantize_turned(const QuantLayout& layout, const ValueTile& tile, const StoredBytes& stored, DType to,
                       u8* out, i64 out_row_bytes);

// The values [first, end) in row-major order, one after the other; the spans have the bytes of
// stored_ranges(layout, first, end).
void dequantize_items(const QuantLayout& layout, i64 first, i64 end, std::span<const u8> codes,
                      std::span<const u8> scales, std::span<const u8> zero_points, DType to, u8* out);

}  // namespace mckpt::impl
