// Counts of impossible values: NaN codes, scales that are not positive numbers.
#include "core/quantized/checks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "core/base/processor.h"
#include "core/base/text.h"
#include "core/quantized/codes.h"
#include "core/quantized/scales.h"

namespace mckpt::impl {
namespace {

// The meaning of each byte as a code.
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

// Whether a word has bits behind its last code; packing leaves zeros there.
bool has_bits_between(const QuantLayout& layout, const u8* row) {
  const i64 each = 32 / layout.int_bits;
  for (i64 column = 0; column < layout.columns; column += each, row += 4) {
    u32 word;
    std::memcpy(&word, row, sizeof word);
    if (u64{word} >> std::min(each, layout.columns - column) * layout.int_bits != 0) return true;
  }
  return false;
}

// The columns' bits end in the middle of a word or byte; packing leaves zeros after them.
bool has_padding_bits(const QuantLayout& layout, const u8* row) {
  if (layout.whole_codes) return has_bits_between(layout, row);
  i64 used = layout.columns * layout.int_bits, bytes = layout.code_row_bytes();
  if (used % 8 != 0 && row[used / 8] >> used % 8 != 0) return true;
  for (i64 i = ceil_div(used, 8); i < bytes; i++)
    if (row[i] != 0) return true;
  return false;
}

// Without a branch, so that compilers make vectors of it.
[[gnu::always_inline]] inline bool any_from(const u8* bytes, i64 count, u8 least) {
  u8 any = 0;
  for (i64 i = 0; i < count; i++) any |= static_cast<u8>((bytes[i] & 0x7f) >= least);
  return any != 0;
}
bool any_plain(const u8* bytes, i64 count, u8 least) { return any_from(bytes, count, least); }
MCKPT_WITH_AVX2 bool any_avx2(const u8* bytes, i64 count, u8 least) { return any_from(bytes, count, least); }

u8 largest_byte(std::span<const u8> bytes) {
  u8 largest = 0;
  for (u8 byte : bytes) largest = std::max(largest, byte);
  return largest;
}

}  // namespace

CodeFaults count_code_faults(const QuantLayout& layout, i64 first_row, i64 rows, std::span<const u8> codes) {
  CodeFaults faults;
  faults.codes = rows * layout.columns;
  // Every code of less than a byte, and every integer of a byte, is a number.
  if (layout.codes == CodeFormat::kE2M1 || layout.codes == CodeFormat::kE2M3 ||
      layout.codes == CodeFormat::kInt8)
    return faults;
  if (layout.codes == CodeFormat::kPackedInt) {
    for (i64 r = 0; r < rows; r++)
      if (has_padding_bits(layout, codes.data() + r * layout.code_row_bytes()))
        faults.padding.add((first_row + r + 1) * layout.columns - 1);
    return faults;
  }
  if (!has_bad_codes(layout.codes, codes)) return faults;
  const std::array<Kind, 256> kinds = kinds_of(layout.codes);
  for (i64 i = 0; i < std::ssize(codes); i++) {
    Kind kind = kinds[codes[i]];
    if (kind == Kind::kNan) faults.nan.add(first_row * layout.columns + i);
    if (kind == Kind::kInfinite) faults.infinite.add(first_row * layout.columns + i);
  }
  return faults;
}

void add_to(CodeFaults& sum, const CodeFaults& later) {
  sum.codes += later.codes;
  sum.nan.add(later.nan);
  sum.infinite.add(later.infinite);
  sum.padding.add(later.padding);
}

ScaleFaults count_scale_faults(DType scales, std::span<const u8> bytes) {
  ScaleFaults faults;
  i64 item = dtype_bytes(scales, 1);
  faults.scales = std::ssize(bytes) / item;
  for (i64 i = 0; i < faults.scales; i++) {
    double scale = scale_value(scales, bytes.data() + i * item);
    if (scale != scale)
      faults.nan.add(i);
    else if (std::isinf(scale))
      faults.infinite.add(i);
    else if (scale == 0)
      faults.zero.add(i);
    else if (scale < 0)
      faults.negative.add(i);
  }
  return faults;
}

std::string group_fault(const QuantLayout& s, std::span<const i32> groups) {
  if (std::ssize(groups) != s.columns)
    return cat("groups of ", std::ssize(groups), " columns, and ", s.columns, " columns");
  std::vector<i64> sizes(static_cast<std::size_t>(s.scale_columns()));
  for (i64 c = 0; c < s.columns; c++) {
    if (groups[c] < 0 || groups[c] >= std::ssize(sizes))
      return cat("column ", c, " is in group ", groups[c], ", and the groups are 0 to ",
                 std::ssize(sizes) - 1);
    sizes[groups[c]]++;
  }
  for (i64 g = 0; g < std::ssize(sizes); g++)
    if (const i64 share = std::min(s.block_columns, s.columns - g * s.block_columns); sizes[g] != share)
      return cat("group ", g, " has ", sizes[g], " columns, and ", share, " share its scale");
  return "";
}

bool has_bad_codes(CodeFormat codes, std::span<const u8> bytes) {
  if (codes != CodeFormat::kE4M3 && codes != CodeFormat::kE5M2) return false;
  // Without its sign, a byte is bad from this one on.
  const u8 least = codes == CodeFormat::kE4M3 ? 0x7f : 0x7c;
  auto any = best_processor() == Processor::kAny ? any_plain : any_avx2;
  return any(bytes.data(), std::ssize(bytes), least);
}

ScaleRange range_of_scales(DType scales, std::span<const u8> bytes) {
  ScaleRange range;
  if (scales == DType::kU8 || scales == DType::kF8E8M0) {
    u8 largest = largest_byte(bytes);
    range.bad = largest == 255;  // NaN; no other exponent is zero or negative
    range.largest = e8m0_value(largest);
    return range;
  }
  const i64 item = dtype_bytes(scales, 1);
  for (i64 i = 0; i < std::ssize(bytes) / item; i++) {
    double scale = scale_value(scales, bytes.data() + i * item);
    range.bad |= !(scale >= 0) || std::isinf(scale);
    range.zero |= scale == 0;
    range.largest = std::max(range.largest, scale);
  }
  return range;
}

double largest_code(const QuantLayout& layout) {
  switch (layout.codes) {
    case CodeFormat::kE4M3:
      return static_cast<double>(kE4M3Max);
    case CodeFormat::kE5M2:
      return 57344;
    case CodeFormat::kE2M3:
      return static_cast<double>(kE2M3Max);
    case CodeFormat::kE2M1:
      return static_cast<double>(kE2M1Max);
    case CodeFormat::kPackedInt:
    case CodeFormat::kInt8:
      return 1 << (layout.zero_points ? layout.int_bits : layout.int_bits - 1);
  }
  return 0;
}

}  // namespace mckpt::impl
