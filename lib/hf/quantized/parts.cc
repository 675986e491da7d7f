// Looks tensors up and compares shapes.
#include "hf/quantized/parts.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/base/one_of.h"
#include "core/items/shape.h"
#include "hf/quantized/claims.h"
#include "io/store/store.h"

namespace mckpt::impl {

PartFinder::PartFinder(const Store& store, const std::optional<QuantConfig>& config)
    : store_(store), config_(config) {
  for (i64 t = 0; t < store.tensor_count(); t++) numbers_.emplace(store.name(t), t);
}

i64 PartFinder::find(std::string_view name) const {
  auto at = numbers_.find(name);
  return at == numbers_.end() ? -1 : at->second;
}

i64 PartFinder::module_scale(std::string_view weight) const {
  constexpr std::string_view kLeaf = "weight";
  if (!weight.ends_with(".weight")) return -1;
  weight.remove_suffix(kLeaf.size());
  return find(cat(weight, "scale"));
}

PartFinder::Dims PartFinder::dims(i64 t) const { return {store_.dims(t).begin(), store_.dims(t).end()}; }

void PartFinder::misfit(i64 tensor, std::string_view what, const std::string& expected,
                        const std::string& found) const {
  throw Error(Code::kQuantMisfit, std::string(what))
      .tensor(store_.name(tensor))
      .expected(expected)
      .found(found);
}

void PartFinder::expect_dims(i64 tensor, const Dims& expected, std::string_view why) const {
  if (dims(tensor) != expected)
    misfit(tensor, cat("the shape does not fit: ", why), dims_to_string(expected),
           dims_to_string(dims(tensor)));
}

void PartFinder::expect_dtype(i64 tensor, std::initializer_list<DType> types) const {
  if (std::ranges::find(types, store_.dtype(tensor)) != types.end()) return;
  std::vector<std::string_view> names;
  for (DType t : types) names.push_back(dtype_name(t));
  misfit(tensor, "the data type does not fit its part in a quantised weight", one_of(names),
         std::string(dtype_name(store_.dtype(tensor))));
}

QuantizedTensor PartFinder::made(CodeFormat format, std::string_view name, i64 codes, i64 scales) const {
  QuantizedTensor q;
  q.name = name, q.codes = codes, q.scales = scales;
  q.layout.codes = format, q.layout.scales = store_.dtype(scales);
  return q;
}

void PartFinder::set_matrix(QuantizedTensor& q, i64 codes_per_byte) const {
  Dims d = dims(q.codes);
  if (d.size() != 2 && d.size() != 3)
    misfit(q.codes, "codes are neither a matrix nor a stack of matrices", "2 or 3 dimensions",
           dims_to_string(d));
  q.layout.matrices = d.size() == 3 ? d[0] : 1;
  q.layout.rows = d[d.size() - 2], q.layout.columns = d[d.size() - 1] * codes_per_byte;
  q.dims = d;
  q.dims.back() = q.layout.columns;
}

void PartFinder::set_groups(QuantizedTensor& q, i64 columns) const {
  q.layout.block_columns = columns;
  expect_grid(q, cat("one scale for ", columns, " codes of a row"));
}

namespace {

// The places where the config lacks an order of groups for such codes, or "". All releases of
// compressed-tensors leave the numbers of groups out unless the config group of the module has the order;
// which modules a config group is for is not read, so all that the codes fit must have it.
std::string missing_order(const std::vector<QuantConfig::Weights>& groups, const QuantLayout& layout) {
  if (std::ranges::none_of(groups, &QuantConfig::Weights::ordered_by_group)) return "no such setting";
  i64 fit = 0, without = 0;
  for (const QuantConfig::Weights& w : groups)
    if (may_be_in(w, layout)) fit++, without += !w.ordered_by_group;
  if (without == 0) return "";
  return cat("no such setting in ", without, " of ", fit, " config_groups that these codes fit");
}

}  // namespace

void set_group_tensor(const PartFinder& parts, QuantizedTensor& q) {
  const i64 t = parts.find(cat(q.name, "_g_idx"));
  if (t < 0) return;
  const QuantLayout& l = q.layout;
  const bool fp8 = l.codes == CodeFormat::kE4M3 || l.codes == CodeFormat::kE5M2;
  if (!(has_integers(l) || fp8) || is_exponent(l.scales))
    throw Error(Code::kQuantized, cat(scheme_text(l), " in an order of their own are not decoded"))
        .tensor(parts.store().name(t))
        .help("load the model in the library that wrote it and save it in bfloat16");
  if (l.block_rows != 1 || q.dims.size() != 2)
    parts.misfit(t, "columns are in groups, and scales are not", "scales of groups of a row", scheme_text(l));
  parts.expect_dtype(t, {DType::kI32});
  parts.expect_dims(t, {l.columns}, "the group of each column");
  if (const QuantConfig* config = parts.config())
    if (const std::string missing = missing_order(config->weights, l); !missing.empty())
      parts.misfit(t, "columns have numbers of groups, and the config does not declare them",
                   "actorder group in quantization_config", missing);
  q.groups = t;
}

void PartFinder::expect_grid(const QuantizedTensor& q, std::string_view why) const {
  Dims expected = {q.layout.scale_rows(), q.layout.scale_columns()};
  if (q.dims.size() == 3) expected.insert(expected.begin(), q.layout.matrices);
  expect_dims(q.scales, expected, why);
}

}  // namespace mckpt::impl
