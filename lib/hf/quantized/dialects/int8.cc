// Integers of a byte each, as compressed-tensors writes them (int-quantized, naive-quantized): W8A8 and, with
// fewer bits in each byte, W4A8. A scale covers the tensor, a row, a group of a row, or a block; zero points
// are a byte for each scale.
//
//   w.weight I8 [64, 96]   w.weight_scale BF16 [64, 3]   w.weight_zero_point I8 [64, 3]       groups of 32
#include <algorithm>

#include "core/base/text.h"
#include "core/items/shape.h"
#include "hf/quantized/parts.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

i64 items_of(const PartFinder::Dims& dims) { return Shape(dims).items(); }

// Groups of the config whose weights are integers.
template <typename Fits>
const QuantConfig::Weights* integers_that(const PartFinder& parts, Fits&& fits) {
  if (!parts.config()) return nullptr;
  for (const QuantConfig::Weights& w : parts.config()->weights)
    if (w.type != "float" && fits(w)) return &w;
  return nullptr;
}

// The bits that the config gives all integers; 8 where it says nothing, or several numbers.
int bits_of(const PartFinder& parts) {
  const QuantConfig::Weights* some = integers_that(parts, [](const auto& w) { return w.bits > 0; });
  if (!some || some->bits < 2 || some->bits > 8) return 8;
  const QuantConfig::Weights* other =
      integers_that(parts, [&](const auto& w) { return w.bits > 0 && w.bits != some->bits; });
  return other ? 8 : static_cast<int>(some->bits);
}

}  // namespace

bool set_one_scale(const PartFinder& parts, QuantizedTensor& q) {
  const PartFinder::Dims s = parts.dims(q.scales);
  if (q.layout.matrices != 1 || items_of(s) != 1 || q.layout.rows < 1) return false;
  // [1, 1] of a matrix of one row is the row's.
  if (q.layout.rows == 1 && s.size() > 1) return false;
  q.layout.block_rows = q.layout.rows, q.layout.block_columns = std::max<i64>(q.layout.columns, 1);
  return true;
}

bool set_block(const PartFinder& parts, QuantizedTensor& q) {
  const PartFinder::Dims s = parts.dims(q.scales);
  QuantLayout& l = q.layout;
  const QuantConfig::Weights* w = integers_that(parts, [&](const auto& one) {
    return one.block_rows > 0 && s.size() >= 2 && s[s.size() - 2] == ceil_div(l.rows, one.block_rows) &&
           s.back() == ceil_div(l.columns, one.block_columns);
  });
  if (w) l.block_rows = w->block_rows, l.block_columns = w->block_columns;
  return w != nullptr;
}

void set_zero_point_bytes(const PartFinder& parts, QuantizedTensor& q) {
  q.layout.zero_points = q.layout.zero_points_are_bytes = true;
  parts.expect_dtype(q.zero_points, {DType::kI8});
  if (items_of(parts.dims(q.zero_points)) != items_of(parts.dims(q.scales)))
    parts.expect_dims(q.zero_points, parts.dims(q.scales), "one zero point for each scale");
}

std::optional<QuantizedTensor> int8_weight(const PartFinder& parts, i64 t) {
  const std::string_view name = parts.store().name(t);
  const i64 scales = parts.find(cat(name, "_scale"));
  if (scales < 0) return std::nullopt;
  QuantizedTensor q = parts.made(CodeFormat::kInt8, name, t, scales);
  parts.expect_dtype(scales, {DType::kBF16, DType::kF16, DType::kF32});
  parts.set_matrix(q, 1);
  QuantLayout& l = q.layout;
  l.product_is_f16 = l.scales == DType::kF16;
  l.int_bits = bits_of(parts);
  const PartFinder::Dims s = parts.dims(scales);
  const bool of_rows = s.size() == q.dims.size() && s[s.size() - 2] == l.rows;
  const bool vector = s.size() == 1 && s[0] == l.rows && l.rows != 1 && l.matrices == 1;
  const bool has_columns = parts.config() && parts.config()->method == QuantMethod::kCompressedTensors;
  if (vector && has_columns) parts.expect_dims(scales, {l.rows, 1}, "one scale for each row");
  if (vector) {
    l.block_columns = std::max<i64>(l.columns, 1);
  } else if (!set_one_scale(parts, q) && !set_block(parts, q)) {
    // Groups of one size fill the row.
    const i64 groups = of_rows ? std::max<i64>(s.back(), 1) : 1;
    if (l.columns % groups != 0)
      parts.misfit(scales, cat("groups of one size do not fill ", l.columns, " columns"),
                   "a number that divides them", cat(groups));
    parts.set_groups(q, std::max<i64>(l.columns / groups, 1));
  }
  q.zero_points = parts.find(cat(name, "_zero_point"));
  if (q.zero_points >= 0) set_zero_point_bytes(parts, q);
  return q;
}

}  // namespace mckpt::impl
