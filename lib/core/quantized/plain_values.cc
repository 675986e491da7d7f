// The rule of dequantisation, item by item.
#include "core/quantized/plain_values.h"

#include "core/items/half_bits.h"
#include "core/quantized/codes.h"
#include "core/quantized/row_code.h"
#include "core/quantized/scales.h"

namespace mckpt::impl {
namespace {

// `bits` bits from bit `at` of a little-endian stream. pre: 1 <= bits <= 8.
u32 bits_at(const u8* stream, i64 at, int bits) {
  int shift = static_cast<int>(at % 8);
  u32 word = stream[at / 8];
  if (shift + bits > 8) word |= static_cast<u32>(stream[at / 8 + 1]) << 8;
  return word >> shift & ((1u << bits) - 1);
}

// The value of a code before it is scaled; `column` counts from the byte where the row's codes begin in
// memory.
float code_value(const QuantLayout& s, const u8* codes, i64 first_column, i64 column) {
  switch (s.codes) {
    case CodeFormat::kE4M3:
      return e4m3_value(codes[column - first_column]);
    case CodeFormat::kE5M2:
      return e5m2_value(codes[column - first_column]);
    case CodeFormat::kE2M3: {
      i64 from = first_column * 6 / 8 * 8;
      return e2m3_value(static_cast<u8>(bits_at(codes, column * 6 - from, 6)));
    }
    case CodeFormat::kE2M1: {
      u8 nibble = static_cast<u8>(codes[column / 2 - first_column / 2] >> column % 2 * 4 & 15);
      if (nibble == 8 && s.nibble_8_is_plus_zero) return 0;
      return e2m1_value(nibble);
    }
    case CodeFormat::kPackedInt: {
      i64 from = s.code_byte_of(first_column) * 8;
      int stored = static_cast<int>(bits_at(codes, s.bit_of(column) - from, s.int_bits));
      return static_cast<float>(stored - (1 << (s.int_bits - 1)));
    }
    case CodeFormat::kInt8:
      return static_cast<float>(static_cast<std::int8_t>(codes[column - first_column]));
  }
  return 0;
}

void put(DType to, float value, u8* out) {
  if (to == DType::kBF16) return put_value<DType::kBF16>(value, out);
  if (to == DType::kF16) return put_value<DType::kF16>(value, out);
  put_value<DType::kF32>(value, out);
}

}  // namespace

void dequantize_plainly(const QuantLayout& s, const ValueTile& tile, const StoredBytes& stored, DType to,
                        u8* out, i64 out_row_bytes) {
  i64 item = dtype_bytes(to, 1), scale_bytes = dtype_bytes(s.scales, 1);
  i64 first_scale_row = tile.rows > 0 ? s.scale_row_of(tile.first_row) : 0;
  i64 first_block = s.first_block_from(tile.first_column);
  for (i64 r = 0; r < tile.rows; r++) {
    i64 row = tile.first_row + r;
    const u8* codes = stored.codes + r * stored.code_row_bytes;
    const u8* scales = stored.scales + (s.scale_row_of(row) - first_scale_row) * stored.scale_row_bytes;
    for (i64 c = 0; c < tile.columns; c++) {
      i64 column = tile.first_column + c, block = s.block_of(column);
      float code = code_value(s, codes, tile.first_column, column);
      if (s.zero_points)
        code -= static_cast<float>(zero_point_at(s, stored.zero_points, tile.first_row, row, block));
      double scale = block_scale(s, scales + (block - first_block) * scale_bytes);
      // Exact in double, so this is the product of two floats, rounded once.
      float value = static_cast<float>(static_cast<double>(code) * scale);
      if (s.product_is_f16) value = from_f16(to_f16(value));
      put(to, value, out + r * out_row_bytes + c * item);
    }
  }
}

}  // namespace mckpt::impl
