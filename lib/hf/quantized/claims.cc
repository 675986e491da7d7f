// Each claim is asked by its own function; the first that a layout contradicts is said in words.
#include "hf/quantized/claims.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "core/base/text.h"
#include "core/quantized/layout.h"
#include "hf/quantized/parts.h"

namespace mckpt::impl {
namespace {

bool is_fp8(const QuantLayout& l) { return l.codes == CodeFormat::kE4M3 || l.codes == CodeFormat::kE5M2; }
bool is_fp4(const QuantLayout& l) { return l.codes == CodeFormat::kE2M1; }
bool is_fp6(const QuantLayout& l) { return l.codes == CodeFormat::kE2M3; }

bool method_fits(QuantMethod method, const QuantLayout& l) {
  switch (method) {
    case QuantMethod::kFp8:
      return is_fp8(l);
    case QuantMethod::kMxfp4:
      return is_fp4(l) && is_exponent(l.scales);
    case QuantMethod::kModelOpt:
      return is_fp8(l) || is_fp4(l);
    case QuantMethod::kCompressedTensors:
      return true;
  }
  return false;
}

// Whether the scales have the grid of blocks of this size in each matrix.
bool has_grid(const QuantLayout& l, i64 rows, i64 columns) {
  return l.scale_rows() == ceil_div(l.rows, std::max<i64>(rows, 1)) &&
         l.scale_columns() == ceil_div(l.columns, std::max<i64>(columns, 1));
}

bool strategy_fits(const QuantConfig::Weights& w, const QuantLayout& l) {
  if (w.strategy == "tensor") return has_grid(l, l.rows, l.columns);
  if (w.strategy == "channel") return has_grid(l, 1, l.columns);
  if (w.strategy == "group" || w.strategy == "tensor_group")
    return w.group_size == 0 || has_grid(l, 1, w.group_size);
  if (w.strategy == "block") return w.block_rows == 0 || has_grid(l, w.block_rows, w.block_columns);
  return true;
}

// Whether a format of compressed-tensors has such codes. A format that is not listed claims nothing.
bool format_fits(std::string_view format, const QuantLayout& l) {
  if (format == "pack-quantized") return l.codes == CodeFormat::kPackedInt;
  if (format == "nvfp4-pack-quantized") return is_fp4(l) && !is_exponent(l.scales);
  if (format == "mxfp4-pack-quantized") return is_fp4(l) && is_exponent(l.scales);
  if (format == "mxfp6-pack-quantized") return is_fp6(l);
  if (format == "mxfp8-quantized") return is_fp8(l) && is_exponent(l.scales);
  // compressed-tensors takes bytes that are exponents for numbers there.
  if (format == "float-quantized") return is_fp8(l) && l.scales != DType::kU8;
  if (format == "int-quantized") return l.codes == CodeFormat::kInt8;
  if (format == "naive-quantized")
    return (is_fp8(l) && l.scales != DType::kU8) || l.codes == CodeFormat::kInt8;
  return format != "marlin-24";
}

// The claim of a group of compressed-tensors that the layout contradicts, or "".
std::string contradicted_by(const QuantConfig::Weights& w, const QuantLayout& l) {
  const bool integers = has_integers(l);
  if (!format_fits(w.format, l)) return cat("format ", escaped(w.format));
  // A byte may hold integers of fewer bits.
  const bool other_bits = l.codes == CodeFormat::kInt8 ? w.bits > 8 : w.bits != code_bits(l);
  if (w.bits > 0 && other_bits) return cat("num_bits ", w.bits);
  if (!w.type.empty() && (w.type == "int") != integers) return cat("type ", escaped(w.type));
  if (!strategy_fits(w, l))
    return cat("strategy ", w.strategy, w.group_size > 0 ? cat(" of ", w.group_size) : "",
               w.block_rows > 0 ? cat(" of ", w.block_rows, "x", w.block_columns) : "");
  if (integers && w.symmetric && *w.symmetric == l.zero_points)
    return l.zero_points ? "symmetric, so without zero points" : "not symmetric, so with zero points";
  return "";
}

// The format that a text names: "e4m3", "float8_e5m2"; nothing if it names none.
std::optional<CodeFormat> format_named(std::string_view text) {
  if (text.find("e4m3") != text.npos) return CodeFormat::kE4M3;
  if (text.find("e5m2") != text.npos) return CodeFormat::kE5M2;
  return std::nullopt;
}

// ModelOpt's name of what it did to all weights: FP8, FP8_PB_WO, NVFP4, NVFP4_AWQ, MXFP8. A name with both,
// and one that says that they are mixed, claims neither.
bool algorithm_fits(std::string_view name, const QuantLayout& l) {
  bool fp8 = name.find("FP8") != name.npos, fp4 = name.find("FP4") != name.npos;
  if (fp8 == fp4) return true;
  return fp8 ? is_fp8(l) : is_fp4(l);
}

}  // namespace

std::string contradicted_claim(const QuantConfig& config, const QuantLayout& layout) {
  if (!method_fits(config.method, layout)) return config.text;
  if (config.method == QuantMethod::kModelOpt && !algorithm_fits(config.algorithm, layout))
    return cat("quant_algo ", escaped(config.algorithm));
  if (std::optional<CodeFormat> f = format_named(config.fmt); f && is_fp8(layout) && *f != layout.codes)
    return cat("fmt ", escaped(config.fmt));
  if (config.method != QuantMethod::kCompressedTensors) return "";
  bool group_formats = std::ranges::any_of(config.weights, [](const auto& w) { return !w.format.empty(); });
  if (!group_formats && !format_fits(config.format, layout)) return cat("format ", escaped(config.format));
  std::string first;
  for (const QuantConfig::Weights& w : config.weights) {
    std::string claim = contradicted_by(w, layout);
    if (claim.empty()) return "";
    if (first.empty()) first = claim;
  }
  return first;
}

bool may_be_in(const QuantConfig::Weights& group, const QuantLayout& layout) {
  return contradicted_by(group, layout).empty();
}

}  // namespace mckpt::impl
