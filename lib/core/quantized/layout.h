// The layout of a quantised tensor: small codes, and scales that blocks of codes share. Edge blocks are cut.
//
//   value[r, c] = code[r, c] * scale[r / block_rows, c / block_columns]
//
//   scheme                         codes        bytes a row         scales                 block
//   FP8 blocks (DeepSeek-V3)       kE4M3        columns             F32, BF16, E8M0, U8    128 x 128, any
//   FP8, one scale for each row    kE4M3                            F32, BF16              1 x columns
//   FP8, one scale                 kE4M3                            F32, BF16              rows x columns
//   MXFP8                          kE4M3                            E8M0, U8               1 x 32
//   MXFP6                          kE2M3        columns * 3 / 4     E8M0, U8               1 x 32
//   MXFP4 (gpt-oss)                kE2M1        columns / 2         E8M0, U8               1 x 32
//   NVFP4                          kE2M1        columns / 2         E4M3, and one F32      1 x 16
//   INT4, INT8 (pack-quantized)    kPackedInt   whole 32-bit words  BF16, F16, F32         1 x 32, any
//   INT8 (int-quantized)           kInt8        columns             BF16, F16, F32         1 x columns, any
//
// A stack of E matrices (experts) is one tensor with E * rows rows: rows are counted through all matrices,
// and blocks begin anew in each. U8 scales are E8M0 exponents, never factors.
// Blocks of a row are columns side by side: 0 0 1 1 2 2; or, with group_of, any columns: 2 0 0 1 2 1.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/int.h"
#include "core/items/dtype.h"

namespace mckpt::impl {

enum class CodeFormat : u8 {
  kE4M3,       // a byte; 0x7f and 0xff are NaN, there is no infinity
  kE5M2,       // a byte; the upper half of fp16
  kE2M3,       // 6 bits; column c is at bit c * 6 of its row: 0 to .875 in eighths, up to 7.5, and negatives
  kE2M1,       // 4 bits, the first of two in the lower half of a byte: 0 .5 1 1.5 2 3 4 6, and negatives
  kPackedInt,  // `int_bits` bits, in words of 32 bits (`whole_codes`), with 2^(int_bits-1) added
  kInt8,       // a byte with a sign, whose values `int_bits` bits could hold
};

// The effect of the whole tensor's one scale on the scales of blocks (NVFP4).
enum class TensorScale : u8 {
  kNone,
  kTimes,         // ModelOpt: weight_scale_2
  kDivide,        // compressed-tensors: weight_global_scale of shape [1]
  kDivideToBf16,  // weight_global_scale of shape []: compressed-tensors rounds the quotient to bf16
};

struct QuantLayout {
  CodeFormat codes = CodeFormat::kE4M3;
  int int_bits = 4;  // of kPackedInt and kInt8: 2 to 8
  // The packing of kPackedInt. Both have the codes of 2, 4 and 8 bits in the same places.
  //
  //   false   column c is at bit c * int_bits of its row    3 bits: column 10 is in words 0 and 1
  //   true    32 / int_bits whole codes in a word           3 bits: column 10 is at bit 0 of word 1
  bool whole_codes = false;
  DType scales = DType::kF32;
  i64 matrices = 1, rows = 0, columns = 0;  // of values; rows of one matrix
  i64 block_rows = 1, block_columns = 1;
  TensorScale tensor_rule = TensorScale::kNone;
  float tensor_scale = 1;
  bool zero_points = false;            // integers: value = (code - zero point) * scale
  bool zero_points_are_bytes = false;  // one I8 for each scale, in their grid; else packed words
  bool nibble_8_is_plus_zero = false;  // kE2M1: ModelOpt's table has +0 where others have -0
  // compressed-tensors computes in the type of the scales: with F16 scales a product is rounded to fp16
  // before it becomes anything else. With F32 and BF16 scales one rounding, to the wanted type, is the same.
  bool product_is_f16 = false;
  // compressed-tensors' weight_g_idx: the group of each column. Null: groups are side by side.
  std::shared_ptr<const std::vector<i32>> group_of{};

  i64 all_rows() const { return matrices * rows; }
  i64 code_row_bytes() const;
  // The first bit of a column's code, counted from the beginning of its row, and the byte that has it.
  i64 code_bit_of(i64 column) const;
  i64 code_byte_of(i64 column) const { return code_bit_of(column) / 8; }
  // The stored scales of one matrix; the tensor of scales has matrices * scale_rows() rows.
  i64 scale_rows() const { return ceil_div(rows, block_rows); }
  i64 scale_columns() const { return ceil_div(columns, block_columns); }
  // The block of a column in a row of blocks.
  i64 block_of(i64 column) const { return group_of ? (*group_of)[column] : column / block_columns; }
  // The first block that columns from this one on can be in: where a tile's scales begin.
  i64 first_block_from(i64 column) const { return group_of ? 0 : column / block_columns; }
  i64 block_end(i64 column) const;  // of the columns of its block that are side by side
  i64 scale_row_bytes() const;
  // The first bit of the packed integer with this number: of a row's codes, counted by columns, or of a
  // column's zero points, counted by rows.
  i64 bit_of(i64 number) const;
  // The words that so many packed integers take.
  i64 words_of(i64 count) const;
  // Packed zero points of a column are packed as the codes of a row are.
  i64 zero_point_word_rows() const { return words_of(rows); }

  // The row of the tensor of scales that has the scales of a row of values.
  i64 scale_row_of(i64 row) const { return row / rows * scale_rows() + row % rows / block_rows; }
};

int code_bits(const QuantLayout& layout);
inline bool has_integers(const QuantLayout& layout) {  // of either kind
  return layout.codes == CodeFormat::kPackedInt || layout.codes == CodeFormat::kInt8;
}
// Codes of 4 bits, two in a byte.
bool has_nibbles(const QuantLayout& layout);

// Says in words why a layout is impossible ("a row of 33 values has half a byte"), or "". Functions on
// layouts have the precondition that there is no fault.
std::string layout_fault(const QuantLayout& layout);

// Consecutive bytes of a stored tensor.
struct ByteRange {
  i64 begin = 0, end = 0;
  i64 bytes() const { return end - begin; }
};

// The ranges to read for the values [first, end), counted in row-major order through all matrices: the codes
// of these values, whole rows of scales, whole rows of zero points or of their words.
struct StoredRanges {
  ByteRange codes, scales, zero_points;
};
// pre: 0 <= first < end <= all values.
StoredRanges stored_ranges(const QuantLayout& layout, i64 first, i64 end);

}  // namespace mckpt::impl
