// Counts of what cannot be meant: NaN codes, scales that are no positive numbers.
#include "core/quantized/checks.h"

#include <array>
#include <cmath>

#include "core/quantized/codes.h"
#include "core/quantized/scales.h"

namespace mckpt::impl {
namespace {

// What each byte is as a code.
enum class Kind : u8 { kNumber, kNan, kInfinite };

std::array<Kind, 256> kinds_of(CodeFormat codes) {
  std::array<Kind, 256> kinds{};
  for (int code = 0; code < 256; code++) {
    u8 byte = static_cast<u8>(code);
    if (codes == CodeFormat::kE4M3 && is_e4m3_nan(byte)) kinds[byte] = Kind::kNan;
    if (codes == CodeFormat::kE5M2 && is_e5m2_nan(byte)) kinds[byte] = Kind::kNan;
    if (codes == CodeFormat::kE5M2 && (byte & 0x7f) == 0x7c) kinds[byte] = Kind::kInfinite;
  }
  return kinds;
}

// The columns' bits end in the middle of a word or byte; packing leaves zeros after them.
bool has_padding_bits(const QuantLayout& layout, const u8* row) {
  i64 used = layout.columns * layout.int_bits, bytes = layout.code_row_bytes();
  if (used % 8 != 0 && row[used / 8] >> used % 8 != 0) return true;
  for (i64 i = ceil_div(used, 8); i < bytes; i++)
    if (row[i] != 0) return true;
  return false;
}

}  // namespace

CodeFaults count_code_faults(const QuantLayout& layout, i64 first_row, i64 rows, std::span<const u8> codes) {
  CodeFaults faults;
  faults.codes = rows * layout.columns;
  if (layout.codes == CodeFormat::kE2M1) return faults;  // every nibble is a number
  if (layout.codes == CodeFormat::kPackedInt) {
    for (i64 r = 0; r < rows; r++) {
      if (!has_padding_bits(layout, codes.data() + r * layout.code_row_bytes())) continue;
      if (faults.padding++ == 0) faults.first = (first_row + r + 1) * layout.columns - 1;
    }
    return faults;
  }
  const std::array<Kind, 256> kinds = kinds_of(layout.codes);
  std::array<i64, 256> counts{};
  for (u8 code : codes) counts[code]++;
  for (std::size_t code = 0; code < 256; code++) {
    if (kinds[code] == Kind::kNan) faults.nan += counts[code];
    if (kinds[code] == Kind::kInfinite) faults.infinite += counts[code];
  }
  if (!faults.any()) return faults;
  std::size_t i = 0;
  while (kinds[codes[i]] == Kind::kNumber) i++;
  faults.first = first_row * layout.columns + static_cast<i64>(i);
  return faults;
}

void add_to(CodeFaults& sum, const CodeFaults& more) {
  sum.codes += more.codes;
  sum.nan += more.nan;
  sum.infinite += more.infinite;
  sum.padding += more.padding;
  if (sum.first < 0) sum.first = more.first;
}

ScaleFaults count_scale_faults(DType scales, std::span<const u8> bytes) {
  ScaleFaults faults;
  i64 item = dtype_bytes(scales, 1);
  faults.scales = static_cast<i64>(bytes.size()) / item;
  for (i64 i = 0; i < faults.scales; i++) {
    double scale = scale_value(scales, bytes.data() + i * item);
    bool nan = scale != scale;
    if (!nan && !std::isinf(scale) && scale > 0) continue;
    faults.nan += nan;
    faults.infinite += std::isinf(scale);
    faults.zero += scale == 0;
    faults.negative += scale < 0 && !std::isinf(scale);
    if (faults.first < 0) faults.first = i;
  }
  return faults;
}

}  // namespace mckpt::impl
