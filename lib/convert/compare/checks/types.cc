// Collects the weights of another type than the one that was asked for, and reports them.
#include "convert/compare/checks/types.h"

#include "core/base/error_code.h"
#include "core/base/name_hash.h"
#include "core/base/text.h"
#include "core/items/item_cast.h"
#include "hf/quantized/dequantized_store.h"
#include "io/store/findings.h"
#include "io/store/state_part.h"
#include "io/store/store.h"
#include "io/verify/verify.h"
#include "mappings/model/parameter.h"

namespace mckpt::impl {

std::optional<DType> TypeClaim::of(std::string_view name, DType own) const {
  if (std::optional<DType> type = rules.of(name)) return type;
  if (kind == kNone) return std::nullopt;
  return kind == kGiven ? given : own;
}

std::optional<DType> TypeClaim::of(const ModelParameter& parameter, std::string_view key, DType own,
                                   bool frozen_have_main) const {
  bool main = !parameter.buffer() && (parameter.trainable || frozen_have_main);
  if (kind == kGiven && !main) return rules.of(key).value_or(own);
  return of(key, own);
}

void TypeCheck::add(std::string_view name, std::optional<DType> asked, DType found) {
  tensors_.push_back({std::string(name), asked, found});
}

void TypeCheck::add_by_name(const Store& tested, const Store& source, const std::vector<bool>& takes_type) {
  StateParts parts(tested);
  NameMap<std::string_view, i64> in_source;
  for (i64 t = 0; t < source.tensor_count(); t++) in_source.emplace(source.name(t), t);
  // A conversion of a quantised model may leave the other tensors in their types.
  const DequantizedStore* view = dequantized_view(source);
  for (i64 t = 0; t < tested.tensor_count(); t++) {
    if (!is_castable(tested.dtype(t)) || parts.part(t) != StatePart::kModel) continue;
    auto at = in_source.find(tested.name(t));
    if (at == in_source.end()) continue;
    const bool as_in_source = tested.dtype(t) == source.dtype(at->second);
    const bool kept = (view && !view->quantized(at->second) && as_in_source) ||
                      (!takes_type.empty() && !takes_type[static_cast<std::size_t>(at->second)]);
    if (kept && claim_.kind == TypeClaim::kGiven && !claim_.rules.of(tested.name(t)))
      add(tested.name(t), source.dtype(at->second), tested.dtype(t));
    else
      add(tested.name(t), claim_.of(tested.name(t), source.dtype(at->second)), tested.dtype(t));
  }
}

bool TypeCheck::add_to(VerifyReport& report) const {
  claim_.rules.refuse_unmatched(std::ssize(tensors_),
                                [&](i64 i) -> std::string_view { return tensors_[i].name; });
  i64 looked_at = 0, unlike = 0;
  Findings found;
  for (const Tensor& t : tensors_) {
    if (!t.asked) continue;
    looked_at++;
    if (*t.asked == t.found) continue;
    std::string asked(dtype_name(*t.asked)), is(dtype_name(t.found));
    found.add({.code = Code::kUnequal,
               .tensor = t.name,
               .message = cat("the tensor is stored as ", is, ", and ", asked, " was asked for")});
    if (unlike++ < Findings::kMostOfOneCode)
      report.differences.push_back({.tensor = t.name, .expected = asked, .found = is});
  }
  if (looked_at > 0)
    report.add({"types", unlike > 0 ? Check::Status::kFail : Check::Status::kPass, looked_at, "tensors"},
               found.take());
  else if (claim_.kind != TypeClaim::kNone)
    report.add({.name = "types", .unit = "tensors", .note = "no tensor looks like a weight"}, {});
  return unlike == 0;
}

}  // namespace mckpt::impl
