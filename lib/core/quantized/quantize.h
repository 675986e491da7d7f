// The way back: scales for values, and the codes that are nearest to values / scales.
//
// Two steps, because scales can also be given: the scales of the file that the values came from. Then codes,
// and with them the bytes, come back as they were wherever the scheme is a fixed point
// (docs/formats/quantized.md).
#pragma once

#include <span>

#include "core/base/int.h"
#include "core/items/dtype.h"
#include "core/quantized/layout.h"

namespace mckpt::impl {

enum class ScaleRule : u8 {
  kAmax,        // F32: amax / 448, of a block of zeros 1e-12 (in bf16) / 448: slime
  kPowerOfTwo,  // the smallest power of two with amax / scale <= 448 (ue8m0: transformers, Bridge, MXFP8)
  kMxFloor,     // E2M1: 2^(floor(log2(amax)) - 2), as OCP's MX says; values above 6 scales become 6
};

// Rows of values in memory, of type bf16, fp16 or fp32.
struct RowsOfValues {
  DType type = DType::kBF16;
  const u8* data = nullptr;
  i64 row_bytes = 0;  // distance of rows
};

// Values that a quantiser met and codes cannot hold.
struct QuantLosses {
  i64 nan = 0;      // written as NaN (E4M3) or zero
  i64 clamped = 0;  // beyond the largest code by more than rounding; infinities too
  bool any() const { return nan + clamped > 0; }
};

// The scales of whole rows of blocks, in the layout's type of scales (F32, BF16, E8M0 or U8; powers of two in
// F32 for `ue8m0` in config.json alone), scale_row_bytes() a row.
// pre: rows [first_row, first_row + rows) begin and end where rows of blocks do; codes are E4M3 or E2M1;
// groups are side by side.
void make_scales(const QuantLayout& layout, ScaleRule rule, i64 first_row, i64 rows,
                 const RowsOfValues& values, u8* scales);

// The codes of rows [first_row, first_row + rows), all columns, with given scales; `scales` begins with the
// scales of the first row's block. Writes code_row_bytes() a row. Codes: E4M3, E5M2, E2M1, kPackedInt
// (symmetric or with the given zero points, in the place that StoredBytes says).
QuantLosses quantize(const QuantLayout& layout, i64 first_row, i64 rows, const RowsOfValues& values,
                     const u8* scales, const u8* zero_points, u8* codes);

// Copies the code of a column from one row of codes to another.
void copy_code(const QuantLayout& layout, i64 column, const u8* from, u8* to);

}  // namespace mckpt::impl
