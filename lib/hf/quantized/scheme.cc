// Names of schemes, as reports show them.
#include "hf/quantized/scheme.h"

#include "core/base/text.h"

namespace mckpt::impl {
namespace {

constexpr i64 kLargestGroup = 256;  // of integers; a scale for more codes is one for a row

bool has_exponents(DType scales) { return scales == DType::kU8 || scales == DType::kF8E8M0; }

std::string kind_of(const QuantLayout& s, bool groups) {
  switch (s.codes) {
    case CodeFormat::kE4M3:
      return groups && has_exponents(s.scales) ? "mxfp8" : "fp8";
    case CodeFormat::kE5M2:
      return "fp8 e5m2";
    case CodeFormat::kE2M1:
      return has_exponents(s.scales) ? "mxfp4" : "nvfp4";
    case CodeFormat::kPackedInt:
      return cat("int", s.int_bits);
  }
  return "";
}

}  // namespace

std::string scheme_text(const QuantLayout& s) {
  bool groups = s.block_rows == 1 && s.block_columns < s.columns;
  // A matrix that is one group wide has groups all the same.
  if (s.codes == CodeFormat::kE2M1) groups = true;
  if (s.codes == CodeFormat::kPackedInt && s.block_columns <= kLargestGroup) groups = true;
  std::string kind = kind_of(s, groups);
  if (groups) return cat(kind, " groups of ", s.block_columns);
  if (s.block_rows == 1 && s.rows > 1) return cat(kind, " one scale a row");
  if (s.block_rows == s.rows && s.block_columns == s.columns) return cat(kind, " one scale a tensor");
  return cat(kind, " blocks ", s.block_rows, "x", s.block_columns);
}

}  // namespace mckpt::impl
