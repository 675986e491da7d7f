// Faults in the codes, scales and groups of a quantised tensor: counts, which verify reports; quick checks
// of bytes that are read while values are computed.
#pragma once

#include <span>
#include <string>

#include "core/base/int.h"
#include "core/quantized/layout.h"

namespace mckpt::impl {

// How many of a kind there are, and the number of the first.
struct FaultKind {
  i64 count = 0, first = -1;
  // The fault at this number, or so many from there on. pre: numbers ascend.
  void add(i64 at, i64 more = 1) {
    if (count == 0) first = at;
    count += more;
  }
  void add(const FaultKind& later) {
    if (later.count > 0) add(later.first, later.count);
  }
};

// Numbers count values, in row-major order through all matrices.
struct CodeFaults {
  i64 codes = 0;       // that were looked at
  FaultKind nan;       // E4M3: 0x7f and 0xff; E5M2
  FaultKind infinite;  // E5M2
  FaultKind
      padding;  // kPackedInt: rows whose bits after the last column are not what packing leaves there; at the
                // row's last value
  bool any() const { return nan.count + infinite.count + padding.count > 0; }
};
// Counts the faults of whole rows of codes. pre: the bytes hold the rows [first_row, first_row + rows).
CodeFaults count_code_faults(const QuantLayout& layout, i64 first_row, i64 rows, std::span<const u8> codes);
void add_to(CodeFaults& sum, const CodeFaults& later);

// Numbers count scales, from the first of the bytes.
struct ScaleFaults {
  i64 scales = 0;
  FaultKind nan, infinite, zero, negative;
  bool any() const { return nan.count + infinite.count + zero.count + negative.count > 0; }
};
// Counts the faults of scales as they are stored; -0 is zero. pre: whole scales of the layout's type.
ScaleFaults count_scale_faults(DType scales, std::span<const u8> bytes);

// Says in words why these are not the groups of a layout's columns ("group 2 has 5 columns, and 4 share its
// scale"), or "". Each group has block_columns columns, the last one what is left.
std::string group_fault(const QuantLayout& layout, std::span<const i32> groups);

// Whether one of these codes, a byte each, is NaN or infinite. Fast: most have none.
bool has_bad_codes(CodeFormat codes, std::span<const u8> bytes);

// The range of all scales together.
struct ScaleRange {
  bool bad = false;   // one is NaN, infinite or negative
  bool zero = false;  // one is zero
  double largest = 0;
};
ScaleRange range_of_scales(DType scales, std::span<const u8> bytes);

// The largest magnitude of a code that is a finite number.
double largest_code(const QuantLayout& layout);

}  // namespace mckpt::impl
