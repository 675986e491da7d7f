// A change that the conversion makes on purpose (Changes) is not a difference.
#include "convert/compare/headers.h"

#include <algorithm>

#include "convert/compare/differences/common_type.h"
#include "convert/compare/differences/comparison.h"
#include "convert/compare/differences/one_side.h"
#include "convert/compare/differences/read_values.h"
#include "convert/compare/differences/tensors.h"
#include "convert/compare/sides/changes.h"
#include "convert/compare/sides/compare_options.h"
#include "convert/jobs/chunk_jobs.h"
#include "core/items/item_cast.h"
#include "core/items/shape.h"
#include "io/store/finding.h"
#include "io/store/store.h"
#include "io/store/tensor_numbers.h"

namespace mckpt::impl {
namespace {

// Such a tensor, on both sides.
UnlikeTensor unlike_tensor(const Store& tested, const Store& source, const TensorDifference& d) {
  if (d.one < 0)
    return {UnlikeTensor::Kind::kOnlySource, std::string(source.name(d.other)), "",
            type_and_shape(source, d.other)};
  std::string name(tested.name(d.one)), found = type_and_shape(tested, d.one);
  if (d.other < 0) return {UnlikeTensor::Kind::kOnlyTested, name, found};
  return {UnlikeTensor::Kind::kHeader, name, found, type_and_shape(source, d.other)};
}

// The finding about it.
Finding unlike_finding(const Store& tested, const Store& source, const TensorDifference& d) {
  return {.code = Code::kUnequal,
          .tensor = std::string(d.one < 0 ? source.name(d.other) : tested.name(d.one)),
          .message = d.one < 0     ? only_in(source, "tensor")
                     : d.other < 0 ? only_in(tested, "tensor")
                                   : cat("the tensor is ", type_and_shape(tested, d.one), ", in ",
                                         side_path(source), " ", type_and_shape(source, d.other))};
}

}  // namespace

Headers::Headers(const Store& tested, const Store& source, const FusedTables* fused, const Changes& changes,
                 const CompareOptions& options, bool any_type)
    : tested_(tested),
      source_(source),
      fused_(fused),
      changes_(changes),
      any_type_(any_type),
      every_(options.counting.all) {}

std::set<i64> Headers::report_unlike(Comparison& comparison) {
  std::set<i64> tensors;
  for (const TensorDifference& d : tensor_differences(tested_, source_)) {
    if (d.one >= 0 && d.other >= 0 && is_cast_alone(d.one, d.other, comparison)) continue;
    std::string name(d.one < 0 ? source_.name(d.other) : std::string_view());
    std::string reason = d.one < 0 && changes_.left_out ? changes_.left_out(name) : "";
    if (!reason.empty()) {
      comparison.set_aside(std::move(reason), unlike_tensor(tested_, source_, d));
      continue;
    }
    if (d.one >= 0) tensors.insert(d.one);
    comparison.leave_out(unlike_finding(tested_, source_, d), unlike_tensor(tested_, source_, d));
  }
  return tensors;
}

void Headers::note_empty(const std::set<i64>& apart, Comparison& comparison) const {
  TensorNumbers in_source(source_);
  for (i64 t = 0; t < tested_.tensor_count(); t++) {
    if (tested_.shape(t).items() > 0 || apart.contains(t)) continue;
    const i64 of = in_source.find(tested_.name(t));
    const std::string name(tested_.name(t));
    if (of < 0 || !comparison.chooses(name)) continue;
    comparison.note_compared(name);
    comparison.note_types(name, stored_form(tested_, t), stored_form(source_, of));
  }
}

// Whether the two differ in nothing but what is compared all the same: the rows of the vocabulary, and a type
// that the conversion intends. A tensor of such a type is listed in casts_.
bool Headers::is_cast_alone(i64 tested, i64 source, Comparison& comparison) {
  const bool resized = fused_ && !fused_->resized.empty() && fused_->resized[source];
  if (!resized && !std::ranges::equal(tested_.dims(tested), source_.dims(source))) return false;
  const DType from = source_.dtype(source), to = tested_.dtype(tested);
  if (from == to) return resized;
  const bool wanted = changes_.type && changes_.type(source) == to;
  const bool cast = is_castable(from) && is_castable(to);
  const bool by_values = every_ && !resized && is_compared_by_values(from, to);
  if (!wanted && !(any_type_ && (cast || by_values))) return false;
  if (comparison.chooses(tested_.name(tested)))
    casts_.push_back({std::string(tested_.name(tested)), from, to});
  return true;
}

}  // namespace mckpt::impl
