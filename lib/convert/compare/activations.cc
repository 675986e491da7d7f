#include "convert/compare/activations.h"

#include <algorithm>

#include "convert/compare/comparing.h"
#include "convert/compare/differences/comparison.h"
#include "core/base/name_hash.h"
#include "core/base/text.h"
#include "hf/quantized/dequantized_store.h"
#include "io/store/names/scale_names.h"
#include "io/store/store.h"
#include "io/verify/verify.h"

namespace mckpt::impl {
namespace {

constexpr const char *kOneScale = "scale of activations or caches",
                     *kMoreScales = "scales of activations or caches";

// The names of such scales in a store, and what is behind each dot of them: a checkpoint may have names in
// front.
NameSet<std::string_view> scales_in(const Store& store) {
  NameSet<std::string_view> out;
  for (i64 t = 0; t < store.tensor_count(); t++) {
    std::string_view name = store.name(t);
    if (!is_activation_scale(name)) continue;
    out.insert(name);
    for (std::size_t dot = name.find('.'); dot != name.npos; dot = name.find('.', dot + 1))
      out.insert(name.substr(dot + 1));
  }
  return out;
}

}  // namespace

std::vector<std::string> take_activation_scales(Store& one, Store& other) {
  DequantizedStore *a = dequantized_view(one), *b = dequantized_view(other);
  if (a && b) {
    for (DequantizedStore* view : {a, b}) view->take_activation_scales([](std::string_view) { return true; });
    return {};
  }
  DequantizedStore* view = a ? a : b;
  if (!view) return {};
  const NameSet<std::string_view> there = scales_in(a ? other : one);
  view->take_activation_scales([&](std::string_view name) { return there.contains(name); });
  return view->activation_scales();
}

void name_activation_scales(const std::vector<std::string>& names, const Comparing& c) {
  const i64 count =
      std::ranges::count_if(names, [&](const std::string& n) { return c.comparison.chooses(n); });
  if (count == 0) return;
  const std::string reason = cat(with_commas(count), " ", count == 1 ? kOneScale : kMoreScales,
                                 ", which the other side does not have");
  for (const std::string& name : names) c.comparison.leave_beside(reason, name);
  c.report.add({.name = "activations", .count = count, .unit = "tensors"}, {});
}

std::string counted_activation_scales(const VerifyReport& report) {
  const auto check = std::ranges::find(report.checks, "activations", &Check::name);
  if (check == report.checks.end()) return "";
  return cat(with_commas(check->count), " ", check->count == 1 ? kOneScale : kMoreScales,
             check->count == 1 ? " was" : " were");
}

}  // namespace mckpt::impl
