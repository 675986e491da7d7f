// Codes and scales become values: by rows, and in a row block by block.
//
//   tile        rows 1-3, columns 20-79 of a tensor with blocks of 1 x 32
//   one row     20..31 | 32..63 | 64..79        scales 0, 1, 2
#include "core/quantized/dequantize.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "core/items/half_bits.h"
#include "core/items/transpose.h"
#include "core/quantized/codes.h"

namespace mckpt::impl {
namespace {

u16 load16(const u8* p) {
  u16 v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

float load_float(const u8* p) {
  float v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

// `bits` bits from bit `at` of a little-endian stream. pre: 1 <= bits <= 8.
u32 bits_at(const u8* stream, i64 at, int bits) {
  int shift = static_cast<int>(at % 8);
  u32 word = stream[at / 8];
  if (shift + bits > 8) word |= static_cast<u32>(stream[at / 8 + 1]) << 8;
  return word >> shift & ((1u << bits) - 1);
}

// The value of a code before it is scaled; `column` counts from the byte where the row's codes begin in memory.
float code_value(const QuantLayout& s, const u8* codes, i64 first_column, i64 column) {
  switch (s.codes) {
    case CodeFormat::kE4M3:
      return e4m3_value(codes[column - first_column]);
    case CodeFormat::kE5M2:
      return e5m2_value(codes[column - first_column]);
    case CodeFormat::kE2M1: {
      u8 nibble = static_cast<u8>(codes[column / 2 - first_column / 2] >> column % 2 * 4 & 15);
      if (nibble == 8 && s.nibble_8_is_plus_zero) return 0;
      return e2m1_value(nibble);
    }
    case CodeFormat::kPackedInt: {
      i64 from = first_column * s.int_bits / 8 * 8;
      int stored = static_cast<int>(bits_at(codes, column * s.int_bits - from, s.int_bits));
      return static_cast<float>(stored - (1 << (s.int_bits - 1)));
    }
  }
  return 0;
}

void store(DType to, float value, u8* out) {
  if (value != value) value = kNaN;
  if (to == DType::kF32) {
    std::memcpy(out, &value, sizeof value);
    return;
  }
  u16 half = to == DType::kBF16 ? to_bf16(value) : to_f16(value);
  std::memcpy(out, &half, sizeof half);
}

}  // namespace

bool is_dequantized_type(DType to) { return to == DType::kBF16 || to == DType::kF16 || to == DType::kF32; }

int zero_point_at(const QuantLayout& s, const u8* words, i64 first_row, i64 row, i64 group) {
  i64 at = row * s.int_bits - first_row * s.int_bits / 32 * 32;
  int value = 0;
  for (int i = 0; i < s.int_bits; i++, at++) {
    const u8* word = words + (at / 32 * s.scale_columns() + group) * 4;
    value |= (word[at % 32 / 8] >> at % 8 & 1) << i;
  }
  return value - (1 << (s.int_bits - 1));
}

double scale_value(DType scales, const u8* stored) {
  switch (scales) {
    case DType::kBF16:
      return static_cast<double>(from_bf16(load16(stored)));
    case DType::kF16:
      return static_cast<double>(from_f16(load16(stored)));
    case DType::kF8E4M3:
      return static_cast<double>(e4m3_value(*stored));
    case DType::kF8E8M0:
    case DType::kU8:
      return *stored == 255 ? static_cast<double>(kNaN) : e8m0_value(*stored);
    default:
      return static_cast<double>(load_float(stored));
  }
}

double block_scale(const QuantLayout& s, const u8* stored) {
  bool is_exponent = s.scales == DType::kF8E8M0 || s.scales == DType::kU8;
  if (is_exponent && s.codes == CodeFormat::kE2M1) return e8m0_value(*stored);
  double scale = scale_value(s.scales, stored);
  if (s.tensor_rule == TensorScale::kNone) return scale;
  float single = static_cast<float>(scale);
  single = s.tensor_rule == TensorScale::kTimes ? single * s.tensor_scale : single / s.tensor_scale;
  if (s.tensor_rule == TensorScale::kDivideToBf16) single = from_bf16(to_bf16(single));
  return static_cast<double>(single);
}

void dequantize(const QuantLayout& s, const ValueTile& tile, const StoredBytes& stored, DType to, u8* out,
                i64 out_row_bytes) {
  i64 item = dtype_bytes(to, 1), scale_bytes = dtype_bytes(s.scales, 1);
  i64 first_scale_row = tile.rows > 0 ? s.scale_row_of(tile.first_row) : 0;
  i64 first_block = tile.first_column / s.block_columns;
  for (i64 r = 0; r < tile.rows; r++) {
    i64 row = tile.first_row + r;
    const u8* codes = stored.codes + r * stored.code_row_bytes;
    const u8* scales = stored.scales + (s.scale_row_of(row) - first_scale_row) * stored.scale_row_bytes;
    for (i64 c = 0; c < tile.columns; c++) {
      i64 column = tile.first_column + c, block = column / s.block_columns;
      float code = code_value(s, codes, tile.first_column, column);
      if (s.zero_points)
        code -= static_cast<float>(zero_point_at(s, stored.zero_points, tile.first_row, row, block));
      double scale = block_scale(s, scales + (block - first_block) * scale_bytes);
      // Exact in double, so this is the product of two floats, rounded once.
      float value = static_cast<float>(static_cast<double>(code) * scale);
      if (s.product_is_f16) value = from_f16(to_f16(value));
      store(to, value, out + r * out_row_bytes + c * item);
    }
  }
}

void dequantize_turned(const QuantLayout& s, const ValueTile& tile, const StoredBytes& stored, DType to,
                       u8* out, i64 out_row_bytes) {
  // Through a buffer that stays in the cache.
  constexpr i64 kRows = 64, kColumns = 128;
  alignas(64) std::array<u8, kRows * kColumns * 4> buffer;
  i64 item = dtype_bytes(to, 1);
  for (i64 r = 0; r < tile.rows; r += kRows)
    for (i64 c = 0; c < tile.columns;) {
      // Pieces end where bytes of codes do.
      i64 column = tile.first_column + c;
      ValueTile piece{tile.first_row + r, std::min(kRows, tile.rows - r), column,
                      std::min(kColumns - column % kColumns, tile.columns - c)};
      dequantize(s, piece, stored_at(s, tile, stored, piece), to, buffer.data(), kColumns * item);
      transpose({piece.rows, piece.columns, kColumns, 1, out_row_bytes / item, 1}, item, buffer.data(),
                out + c * out_row_bytes + r * item);
      c += piece.columns;
    }
}

StoredBytes stored_at(const QuantLayout& s, const ValueTile& tile, const StoredBytes& stored,
                      const ValueTile& piece) {
  StoredBytes at = stored;
  at.codes += (piece.first_row - tile.first_row) * stored.code_row_bytes +
              s.code_byte_of(piece.first_column) - s.code_byte_of(tile.first_column);
  i64 scale_rows = s.scale_row_of(piece.first_row) - s.scale_row_of(tile.first_row);
  i64 blocks = piece.first_column / s.block_columns - tile.first_column / s.block_columns;
  at.scales += scale_rows * stored.scale_row_bytes + dtype_bytes(s.scales, blocks);
  if (s.zero_points)
    at.zero_points +=
        (piece.first_row * s.int_bits / 32 - tile.first_row * s.int_bits / 32) * s.scale_columns() * 4;
  return at;
}

void dequantize_items(const QuantLayout& s, i64 first, i64 end, std::span<const u8> codes,
                      std::span<const u8> scales, std::span<const u8> zero_points, DType to, u8* out) {
  i64 item = dtype_bytes(to, 1), columns = s.columns;
  StoredRanges held = stored_ranges(s, first, end);
  // A part of a row, whole rows, a part of a row.
  while (first < end) {
    ValueTile tile{first / columns, 1, first % columns, std::min(columns - first % columns, end - first)};
    if (tile.columns == columns) tile.rows = (end - first) / columns;
    i64 items = tile.rows * tile.columns;
    StoredRanges need = stored_ranges(s, first, first + items);
    StoredBytes at{codes.data() + (need.codes.begin - held.codes.begin), s.code_row_bytes(),
                   scales.data() + (need.scales.begin - held.scales.begin) +
                       dtype_bytes(s.scales, tile.first_column / s.block_columns),
                   s.scale_row_bytes(), nullptr};
    if (s.zero_points)
      at.zero_points = zero_points.data() + (need.zero_points.begin - held.zero_points.begin);
    dequantize(s, tile, at, to, out, columns * item);
    out += items * item;
    first += items;
  }
}

}  // namespace mckpt::impl
