// Sizes and places of the parts of a quantised tensor.
#include "core/quantized/layout.h"

#include <algorithm>

#include "core/base/text.h"
#include "core/quantized/checks.h"

namespace mckpt::impl {
namespace {

bool is_scale_type(DType dtype) {
  switch (dtype) {
    case DType::kF32:
    case DType::kBF16:
    case DType::kF16:
    case DType::kF8E8M0:
    case DType::kU8:
    case DType::kF8E4M3:
      return true;
    default:
      return false;
  }
}

}  // namespace

int code_bits(const QuantLayout& layout) {
  switch (layout.codes) {
    case CodeFormat::kE2M3:
      return 6;
    case CodeFormat::kE2M1:
      return 4;
    case CodeFormat::kPackedInt:
      return layout.int_bits;
    default:
      return 8;
  }
}

bool has_nibbles(const QuantLayout& layout) { return code_bits(layout) == 4; }

i64 QuantLayout::code_row_bytes() const {
  if (codes == CodeFormat::kPackedInt) return words_of(columns) * 4;
  return columns * code_bits(*this) / 8;
}

i64 QuantLayout::code_bit_of(i64 column) const {
  return codes == CodeFormat::kPackedInt ? bit_of(column) : column * code_bits(*this);
}

i64 QuantLayout::bit_of(i64 number) const {
  if (!whole_codes) return number * int_bits;
  const i64 each = 32 / int_bits;
  return number / each * 32 + number % each * int_bits;
}

i64 QuantLayout::words_of(i64 count) const {
  return whole_codes ? ceil_div(count, i64{32 / int_bits}) : ceil_div(count * int_bits, i64{32});
}

i64 QuantLayout::block_end(i64 column) const {
  const i64 block = block_of(column);
  if (!group_of) return std::min((block + 1) * block_columns, columns);
  while (++column < columns && block_of(column) == block) continue;
  return column;
}

i64 QuantLayout::scale_row_bytes() const { return dtype_bytes(scales, scale_columns()); }

std::string layout_fault(const QuantLayout& s) {
  if (s.matrices < 0 || s.rows < 0 || s.columns < 0) return "a size is negative";
  if (s.block_rows < 1 || s.block_columns < 1) return "a block has no items";
  constexpr i64 kMostInBlock = i64{1} << 40;
  if (s.block_rows > kMostInBlock || s.block_columns > kMostInBlock)
    return cat("a block of ", s.block_rows, " x ", s.block_columns, " is too large");
  if (!is_scale_type(s.scales)) return cat("scales of type ", dtype_name(s.scales), " are not known");
  if (s.codes == CodeFormat::kE2M3 && s.columns % 4 != 0)
    return cat("a row of ", s.columns, " values of 6 bits ends within three bytes");
  if (s.codes == CodeFormat::kE2M1 && s.columns % 2 != 0)
    return cat("a row of ", s.columns, " values of 4 bits ends within a byte");
  if (s.codes == CodeFormat::kE2M1 && s.block_columns % 2 != 0)
    return cat("a block of ", s.block_columns, " values of 4 bits ends within a byte");
  if (has_integers(s) && (s.int_bits < 2 || s.int_bits > 8))
    return cat("integers of ", s.int_bits, " bits are not known");
  if (s.zero_points && !has_integers(s)) return "only integers have zero points";
  const bool packed = s.zero_points && !s.zero_points_are_bytes;
  if (packed && s.block_rows != 1) return "packed zero points belong to groups of one row";
  if (packed && s.matrices > 1) return "a stack of matrices has no packed zero points";
  if (s.group_of && (s.block_rows != 1 || s.matrices != 1))
    return "columns are put into groups of one row of one matrix only";
  if (s.group_of && !group_fault(s, *s.group_of).empty()) return group_fault(s, *s.group_of);
  // No product of sizes may leave 63 bits; a value takes four bytes at most.
  i64 values = checked_mul(checked_mul(s.matrices, s.rows, "rows of a quantised tensor"), s.columns,
                           "items of a quantised tensor");
  checked_mul(values, 8, "bits of a quantised tensor");
  return "";
}

StoredRanges stored_ranges(const QuantLayout& layout, i64 first, i64 end) {
  i64 first_row = first / layout.columns, last_row = (end - 1) / layout.columns;
  i64 first_column = first % layout.columns, last_column = (end - 1) % layout.columns;
  int bits = code_bits(layout);
  StoredRanges r;
  r.codes.begin = first_row * layout.code_row_bytes() + layout.code_byte_of(first_column);
  r.codes.end = last_row * layout.code_row_bytes() + ceil_div(layout.code_bit_of(last_column) + bits, 8);
  r.scales.begin = layout.scale_row_of(first_row) * layout.scale_row_bytes();
  r.scales.end = (layout.scale_row_of(last_row) + 1) * layout.scale_row_bytes();
  if (layout.zero_points && layout.zero_points_are_bytes) {
    r.zero_points.begin = layout.scale_row_of(first_row) * layout.scale_columns();
    r.zero_points.end = (layout.scale_row_of(last_row) + 1) * layout.scale_columns();
  } else if (layout.zero_points) {
    i64 word_row_bytes = layout.scale_columns() * 4;
    r.zero_points.begin = layout.bit_of(first_row) / 32 * word_row_bytes;
    r.zero_points.end = layout.words_of(last_row + 1) * word_row_bytes;
  }
  return r;
}

}  // namespace mckpt::impl
