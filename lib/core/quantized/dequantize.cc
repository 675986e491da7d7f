// Values of quantised tensors: a row is cut where its scales have to be widened again, and passed to a
// kernel.
//
//   tile        rows 1-3, columns 20-79 of a tensor with blocks of 1 x 32
//   one row     20..31 | 32..63 | 64..79        scales 0, 1, 2
#include "core/quantized/dequantize.h"

#include <algorithm>
#include <array>

#include "core/items/transpose.h"
#include "core/quantized/codes.h"
#include "core/quantized/plain_values.h"
#include "core/quantized/row_code.h"
#include "core/quantized/row_kernels.h"
#include "core/quantized/scales.h"

namespace mckpt::impl {
namespace {

// Blocks of which the scales are widened at a time.
constexpr i64 kBlocks = 128;

// True where a kernel knows the layout. None knows codes of six bits, zero points, a product in fp16, groups
// that are not side by side, integers that end within a byte, or blocks that do.
bool has_kernel(const QuantLayout& s) {
  if (s.codes == CodeFormat::kE2M3 || s.zero_points || s.product_is_f16 || s.group_of) return false;
  if (s.codes == CodeFormat::kPackedInt && s.int_bits != 4 && s.int_bits != 8) return false;
  return !has_nibbles(s) || s.block_columns % 2 == 0 || s.block_columns >= s.columns;
}

CodeLevels levels_of(const QuantLayout& s) {
  CodeLevels levels{};
  for (std::size_t i = 0; i < (has_nibbles(s) ? 16 : 256); i++) {
    u8 code = static_cast<u8>(i);
    switch (s.codes) {
      case CodeFormat::kE4M3:
        levels[i] = e4m3_value(code);
        break;
      case CodeFormat::kE5M2:
        levels[i] = e5m2_value(code);
        break;
      case CodeFormat::kE2M3:
        levels[i] = e2m3_value(code);
        break;
      case CodeFormat::kE2M1:
        levels[i] =
            code == 8 && s.nibble_8_is_plus_zero ? 0 : e2m1_value(code) * (scales_are_halved(s) ? 2 : 1);
        break;
      case CodeFormat::kPackedInt:
        levels[i] = static_cast<float>(static_cast<int>(i) - (1 << (s.int_bits - 1)));
        break;
      case CodeFormat::kInt8:
        levels[i] = static_cast<float>(static_cast<std::int8_t>(code));
        break;
    }
  }
  return levels;
}

template <DType kTo>
ScaleTables make_tables(bool nibble_8_is_plus_zero) {
  QuantLayout s;
  s.codes = CodeFormat::kE2M1, s.scales = DType::kU8, s.nibble_8_is_plus_zero = nibble_8_is_plus_zero;
  const CodeLevels levels = levels_of(s);
  ScaleTables tables;
  for (std::size_t code = 0; code < tables.size(); code++) {
    u8 stored = static_cast<u8>(code);
    float scale = 0;
    widen_scales(s, &stored, 1, &scale);
    for (std::size_t n = 0; n < 16; n++) {
      std::array<u8, 2> value;
      put_value<kTo>(levels[n] * scale, value.data());
      tables[code].lower[n] = value[0], tables[code].upper[n] = value[1];
    }
  }
  return tables;
}

// The values of MXFP4 in a type of 16 bits.
const ScaleTables& mxfp4_tables(DType to, bool nibble_8_is_plus_zero) {
  static const std::array<ScaleTables, 2> bf16{make_tables<DType::kBF16>(false),
                                               make_tables<DType::kBF16>(true)};
  static const std::array<ScaleTables, 2> f16{make_tables<DType::kF16>(false),
                                              make_tables<DType::kF16>(true)};
  return (to == DType::kBF16 ? bf16 : f16)[nibble_8_is_plus_zero];
}

// Asks for the codes of rows [begin, end): each is in another line of the cache, far from the one before.
// `last`: the last byte of a row.
void prefetch_rows(const StoredBytes& stored, i64 begin, i64 end, i64 last) {
  for (i64 r = begin; r < end; r++) {
    const u8* row = stored.codes + r * stored.code_row_bytes;
    __builtin_prefetch(row);
    __builtin_prefetch(row + last);
  }
}

}  // namespace

bool is_dequantized_type(DType to) { return to == DType::kBF16 || to == DType::kF16 || to == DType::kF32; }

void dequantize(const QuantLayout& s, const ValueTile& tile, const StoredBytes& stored, DType to, u8* out,
                i64 out_row_bytes) {
  dequantize_on(best_processor(), s, tile, stored, to, out, out_row_bytes);
}

void dequantize_on(Processor processor, const QuantLayout& s, const ValueTile& tile,
                   const StoredBytes& stored, DType to, u8* out, i64 out_row_bytes) {
  if (tile.rows == 0 || tile.columns == 0) return;
  if (!has_kernel(s)) return dequantize_plainly(s, tile, stored, to, out, out_row_bytes);
  const bool by_table = processor == Processor::kAvx2 && scales_are_halved(s) && to != DType::kF32;
  const RowKernel kernel =
      by_table ? avx2_table_kernel() : row_kernel(s.codes, has_nibbles(s), to, processor);
  const CodeLevels levels = levels_of(s);
  std::array<float, kBlocks> scales;
  const i64 item = dtype_bytes(to, 1), end = tile.first_column + tile.columns;
  const i64 first_scale_row = s.scale_row_of(tile.first_row),
            first_block = tile.first_column / s.block_columns;
  RowStretch part;
  part.block_columns = s.block_columns, part.scales = scales.data(), part.levels = &levels;
  if (by_table) part.tables = &mxfp4_tables(to, s.nibble_8_is_plus_zero);
  // Columns outside and rows inside, so that rows of one block share what was widened.
  for (i64 column = tile.first_column; column < end; column += part.items) {
    i64 block = column / s.block_columns;
    // pre of layouts: no overflow up to the row's end.
    i64 blocks = std::min(kBlocks, ceil_div(end, s.block_columns) - block);
    part.items = std::min(end, (block + blocks) * s.block_columns) - column;
    part.skipped = column % s.block_columns;
    part.odd = has_nibbles(s) && column % 2 != 0;
    i64 code_byte = s.code_byte_of(column) - s.code_byte_of(tile.first_column), widened = -1;
    const u8* first_scales = stored.scales + dtype_bytes(s.scales, block - first_block);
    for (i64 r = 0; r < tile.rows; r++) {
      // Without the divisions where each row has its own scales.
      i64 scale_row = s.block_rows == 1 ? r : s.scale_row_of(tile.first_row + r) - first_scale_row;
      part.scale_codes = first_scales + scale_row * stored.scale_row_bytes;
      if (!by_table && scale_row != widened) widen_scales(s, part.scale_codes, blocks, scales.data());
      widened = scale_row;
      part.codes = stored.codes + r * stored.code_row_bytes + code_byte;
      part.out = out + r * out_row_bytes + (column - tile.first_column) * item;
      kernel(part);
    }
  }
}

void dequantize_turned(const QuantLayout& s, const ValueTile& tile, const StoredBytes& stored, DType to,
                       u8* out, i64 out_row_bytes) {
  // Through a buffer that stays in the cache. Pieces are whole vectors of codes: the columns around the tile
  // are decoded with it, which takes less time than single values at the ends.
  constexpr i64 kRows = 64, kColumns = 128, kVector = 16;
  alignas(64) std::array<u8, kRows * kColumns * 4> buffer;
  const i64 item = dtype_bytes(to, 1), unit = s.block_columns % kVector == 0 ? kVector : 2;
  const i64 end = tile.first_column + tile.columns, last = std::min(ceil_div(end, unit) * unit, s.columns);
  for (i64 r = 0; r < tile.rows; r += kRows)
    for (i64 column = tile.first_column; column < end;) {
      i64 begin = column / unit * unit;
      ValueTile piece{tile.first_row + r, std::min(kRows, tile.rows - r), begin,
                      std::min(kColumns, last - begin)};
      StoredBytes at = stored_at(s, tile, stored, piece);
      prefetch_rows(at, piece.rows, std::min(piece.rows + kRows, tile.rows - r),
                    s.code_byte_of(piece.columns - 1));
      dequantize(s, piece, at, to, buffer.data(), kColumns * item);
      i64 wanted = std::min(end, begin + piece.columns) - column;
      transpose({piece.rows, wanted, kColumns, 1, out_row_bytes / item, 1}, item,
                buffer.data() + (column - begin) * item,
                out + (column - tile.first_column) * out_row_bytes + r * item);
      column += wanted;
    }
}

StoredBytes stored_at(const QuantLayout& s, const ValueTile& tile, const StoredBytes& stored,
                      const ValueTile& piece) {
  StoredBytes at = stored;
  at.codes += (piece.first_row - tile.first_row) * stored.code_row_bytes +
              s.code_byte_of(piece.first_column) - s.code_byte_of(tile.first_column);
  i64 scale_rows = s.scale_row_of(piece.first_row) - s.scale_row_of(tile.first_row);
  i64 blocks = s.first_block_from(piece.first_column) - s.first_block_from(tile.first_column);
  at.scales += scale_rows * stored.scale_row_bytes + dtype_bytes(s.scales, blocks);
  if (s.zero_points && s.zero_points_are_bytes)
    at.zero_points += scale_rows * s.scale_columns();
  else if (s.zero_points)
    at.zero_points +=
        (s.bit_of(piece.first_row) / 32 - s.bit_of(tile.first_row) / 32) * s.scale_columns() * 4;
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
                       dtype_bytes(s.scales, s.first_block_from(tile.first_column)),
                   s.scale_row_bytes(), nullptr};
    if (s.zero_points)
      at.zero_points = zero_points.data() + (need.zero_points.begin - held.zero_points.begin);
    dequantize(s, tile, at, to, out, columns * item);
    out += items * item;
    first += items;
  }
}

}  // namespace mckpt::impl
