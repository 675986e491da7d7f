// FP8: a byte a code, with scales that are factors or exponents, of blocks, rows or the whole tensor.
#include <algorithm>
#include <tuple>

#include "core/base/text.h"
#include "core/items/shape.h"
#include "hf/quantized/parts.h"
#include "io/store/store.h"
#include "mappings/names_alone.h"

namespace mckpt::impl {
namespace {

constexpr i64 kUsualBlock = 128;  // of DeepSeek and all that follow it, where no config says another

bool strategy_is(const PartFinder& parts, std::string_view strategy) {
  return parts.config() &&
         std::ranges::any_of(parts.config()->weights, [&](const auto& w) { return w.strategy == strategy; });
}

std::pair<i64, i64> given_block(const PartFinder& parts) {
  if (!parts.config()) return {0, 0};
  if (parts.config()->block_rows > 0) return {parts.config()->block_rows, parts.config()->block_columns};
  for (const QuantConfig::Weights& w : parts.config()->weights)
    if (w.block_rows > 0) return {w.block_rows, w.block_columns};
  return {0, 0};
}

bool block_given(const PartFinder& parts) { return given_block(parts).first > 0; }

std::pair<i64, i64> block_size(const PartFinder& parts) {
  return block_given(parts) ? given_block(parts) : std::pair(kUsualBlock, kUsualBlock);
}

std::string block_text(const PartFinder& parts) {
  auto [rows, columns] = block_size(parts);
  return cat("blocks of ", rows, "x", columns,
             block_given(parts) ? cat(" by ", parts.config()->file) : " as no config says another");
}

QuantizedTensor by_block(const PartFinder& parts, QuantizedTensor q) {
  QuantLayout& l = q.layout;
  std::tie(l.block_rows, l.block_columns) = block_size(parts);
  // Stacked gate and up projections of fewer rows than one block have a row of scales each.
  PartFinder::Dims s = parts.dims(q.scales);
  bool halves = q.dims.size() == 3 && s.size() == 3 && s[1] == 2 && l.rows < l.block_rows &&
                l.rows % 2 == 0 && q.name.ends_with("gate_up_proj");
  if (halves) l.block_rows = l.rows / 2;
  parts.expect_grid(q, block_text(parts));
  return q;
}

// Scales that are exponents: of groups of 32 (MXFP8), or of blocks.
QuantizedTensor exponents(const PartFinder& parts, QuantizedTensor q) {
  PartFinder::Dims s = parts.dims(q.scales);
  bool mx = !block_given(parts) && s.size() == q.dims.size() && s.size() >= 2 &&
            s[s.size() - 2] == q.layout.rows && s.back() == ceil_div(q.layout.columns, PartFinder::kMxGroup);
  if (!mx) return by_block(parts, std::move(q));
  parts.set_groups(q, PartFinder::kMxGroup);
  return q;
}

// Whether the scale is one for each row: [rows, 1], which the blocks do not explain.
bool is_per_channel(const PartFinder& parts, const PartFinder::Dims& s, const QuantizedTensor& q) {
  if (s.size() != q.dims.size() || s.size() < 2 || s.back() != 1 || s[s.size() - 2] != q.layout.rows)
    return false;
  return strategy_is(parts, "channel") || !block_given(parts);
}

// The size of groups of a row that the config gives FP8 weights, if the scales have their grid; else 0.
i64 group_size(const PartFinder& parts, const PartFinder::Dims& s, const QuantizedTensor& q) {
  if (!parts.config() || s.size() != q.dims.size() || s.size() < 2 || s[s.size() - 2] != q.layout.rows)
    return 0;
  for (const QuantConfig::Weights& w : parts.config()->weights)
    if (w.type != "int" && w.strategy == "group" && w.group_size > 0 &&
        s.back() == ceil_div(q.layout.columns, w.group_size))
      return w.group_size;
  return 0;
}

// The one scale of all parts of a table that files have in parts. -1: there is none.
i64 scale_of_table(const PartFinder& parts, std::string_view name) {
  const std::optional<PartName> part = part_by_name(name);
  return part ? parts.find(cat(part->whole, "_scale")) : -1;
}

QuantizedTensor part_of_table(const PartFinder& parts, QuantizedTensor q) {
  parts.expect_dtype(q.scales, {DType::kF32, DType::kBF16, DType::kF16});
  parts.set_matrix(q, 1);
  const PartFinder::Dims s = parts.dims(q.scales);
  if (!s.empty() && s != PartFinder::Dims{1})
    parts.misfit(q.scales, "the parts of a table have one scale", "1 scale",
                 cat(Shape(s).items(), " scales"));
  q.layout.block_rows = std::max<i64>(q.layout.rows, 1);
  q.layout.block_columns = std::max<i64>(q.layout.columns, 1);
  return q;
}

}  // namespace

std::optional<QuantizedTensor> fp8_weight(const PartFinder& parts, i64 t) {
  const std::string_view name = parts.store().name(t);
  const QuantConfig* config = parts.config();
  std::vector<i64> scales;
  for (const char* end : {"_scale_inv", "_scale"})
    if (i64 s = parts.find(cat(name, end)); s >= 0) scales.push_back(s);
  if (i64 s = parts.module_scale(name); s >= 0) scales.push_back(s);
  const bool e5m2 = parts.store().dtype(t) == DType::kF8E5M2;
  const CodeFormat format = e5m2 ? CodeFormat::kE5M2 : CodeFormat::kE4M3;
  if (i64 s = scale_of_table(parts, name); scales.empty() && s >= 0)
    return part_of_table(parts, parts.made(format, name, t, s));
  if (scales.empty()) return std::nullopt;
  if (scales.size() > 1)
    parts.misfit(
        t, "codes have two scales", "one of them",
        cat(escaped(parts.store().name(scales[0])), " and ", escaped(parts.store().name(scales[1]))));
  QuantizedTensor q = parts.made(format, name, t, scales[0]);
  parts.expect_dtype(q.scales, {DType::kF32, DType::kBF16, DType::kF16, DType::kU8, DType::kF8E8M0});
  PartFinder::Dims d = parts.dims(t), s = parts.dims(q.scales);
  bool one = s.empty() || (s.size() == 1 && s[0] == 1);
  if (d.size() == 1 && one) {
    q.layout.matrices = q.layout.rows = 1, q.layout.columns = d[0], q.dims = d;
  } else {
    parts.set_matrix(q, 1);
  }
  if (is_exponent(q.layout.scales)) return exponents(parts, std::move(q));
  if (config && config->block_rows > 0) return by_block(parts, std::move(q));
  if (one && q.layout.matrices > 1)
    parts.misfit(q.scales, "a stack of matrices has one scale", cat(q.layout.matrices, " scales"), "1");
  if (one) {
    q.layout.block_rows = std::max<i64>(q.layout.rows, 1);
    q.layout.block_columns = std::max<i64>(q.layout.columns, 1);
    return q;
  }
  if (i64 group = group_size(parts, s, q); group > 0) {
    parts.set_groups(q, group);
    return q;
  }
  bool rows = s.size() == 1 && s[0] == q.layout.rows && q.layout.matrices == 1;
  if (!rows && !is_per_channel(parts, s, q)) return by_block(parts, std::move(q));
  q.layout.block_columns = std::max<i64>(q.layout.columns, 1);
  return q;
}

}  // namespace mckpt::impl
