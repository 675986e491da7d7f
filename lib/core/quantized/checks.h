// What is wrong with the codes and scales of a quantised tensor: counts, which verify reports.
#pragma once

#include <span>

#include "core/base/int.h"
#include "core/quantized/layout.h"

namespace mckpt::impl {

struct CodeFaults {
  i64 codes = 0;     // that were looked at
  i64 nan = 0;       // E4M3: 0x7f and 0xff; E5M2
  i64 infinite = 0;  // E5M2
  i64 padding = 0;   // kPackedInt: rows whose bits after the last column are not what packing leaves there
  i64 first = -1;    // the first value of those, counted in row-major order; of padding the row's last value
  bool any() const { return nan + infinite + padding > 0; }
};
// Of whole rows of codes. pre: the bytes are those of rows [first_row, first_row + rows).
CodeFaults count_code_faults(const QuantLayout& layout, i64 first_row, i64 rows, std::span<const u8> codes);
void add_to(CodeFaults& sum, const CodeFaults& more);

struct ScaleFaults {
  i64 scales = 0;
  i64 nan = 0, infinite = 0, zero = 0, negative = 0;
  i64 first = -1;  // the first scale that is any of these, counted from the first of the bytes
  bool any() const { return nan + infinite + zero + negative > 0; }
};
// Of scales as they are stored; -0 is zero. pre: whole scales of the layout's type.
ScaleFaults count_scale_faults(DType scales, std::span<const u8> bytes);

}  // namespace mckpt::impl
