// Compares tensors of the same names, box by box; those in another order than row by row by their values.
// Tensors that only one side has, or that differ in type or shape, are reported and not compared, unless the
// conversion makes it so (Intended).
#include <algorithm>
#include <set>

#include "convert/compare/against.h"
#include "convert/compare/checks/casts.h"
#include "convert/compare/checks/types.h"
#include "convert/compare/compare.h"
#include "convert/compare/differences/common_type.h"
#include "convert/compare/differences/comparison.h"
#include "convert/compare/differences/one_side.h"
#include "convert/compare/differences/read_values.h"
#include "convert/compare/differences/tensors.h"
#include "convert/jobs/chunk_jobs.h"
#include "convert/keys/stored_chunks.h"
#include "core/base/error_code.h"
#include "core/base/text.h"
#include "core/items/dtype.h"
#include "core/items/item_cast.h"
#include "core/items/shape.h"
#include "io/store/finding.h"
#include "io/store/store.h"

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

// The headers of both sides, before any data are read.
class Headers {
 public:
  Headers(const Store& tested, const Store& source, const FusedTables* fused, const Intended& intended,
          const CompareOptions& options)
      : tested_(tested), source_(source), fused_(fused), intended_(intended), options_(options) {}

  // Reports the tensors that are missing on one side or differ in type or shape, other than in the rows of
  // the vocabulary. Returns their numbers in the tested store.
  std::set<i64> report_unlike(Comparison& comparison) {
    std::set<i64> tensors;
    for (const TensorDifference& d : tensor_differences(tested_, source_)) {
      if (cast_alone(d, comparison)) continue;
      std::string name(d.one < 0 ? source_.name(d.other) : std::string_view());
      if (std::string reason = d.one < 0 && intended_.repeated ? intended_.repeated(name) : ""; !reason.empty()) {
        comparison.leave_beside(reason, std::move(name));
        continue;
      }
      std::string reason = d.one < 0 && intended_.left_out ? intended_.left_out(name) : "";
      if (!reason.empty()) {
        comparison.set_aside(std::move(reason), unlike_tensor(tested_, source_, d));
        continue;
      }
      if (d.one >= 0) tensors.insert(d.one);
      comparison.leave_out(unlike_finding(tested_, source_, d), unlike_tensor(tested_, source_, d));
    }
    return tensors;
  }

  // Notes tensors without items, which no chunk has: their types are all that is compared. `apart`: tensors of the
  // tested store that were reported.
  void note_empty(const std::set<i64>& apart, Comparison& comparison) const {
    for (i64 t = 0; t < tested_.tensor_count(); t++) {
      if (tested_.shape(t).items() > 0 || apart.contains(t)) continue;
      const i64 of = find_tensor(source_, tested_.name(t));
      const std::string name(tested_.name(t));
      if (of < 0 || !comparison.chooses(name)) continue;
      comparison.note_compared(name);
      comparison.note_types(name, stored_form(tested_, t), stored_form(source_, of));
    }
  }

  // The chosen tensors whose types differ as the conversion intends.
  const std::vector<ComparedTypes>& casts() const { return casts_; }

 private:
  // Whether the two differ in nothing but what is compared all the same: the rows of the vocabulary, and a
  // type that the conversion intends. A tensor of such a type is listed in casts_.
  bool cast_alone(const TensorDifference& d, Comparison& comparison) {
    if (d.one < 0 || d.other < 0) return false;
    bool resized = fused_ && !fused_->resized.empty() && fused_->resized[d.other];
    if (!resized && !std::ranges::equal(tested_.dims(d.one), source_.dims(d.other))) return false;
    DType from = source_.dtype(d.other), to = tested_.dtype(d.one);
    if (from == to) return resized;
    bool wanted = intended_.type && intended_.type(d.other) == to;
    const bool cast = is_castable(from) && is_castable(to);
    const bool by_values = options_.counting.all && !resized && is_compared_by_values(from, to);
    if (!wanted && !(options_.any_type && (cast || by_values))) return false;
    if (comparison.chooses(tested_.name(d.one)))
      casts_.push_back({std::string(tested_.name(d.one)), from, to});
    return true;
  }

  const Store& tested_;
  const Store& source_;
  const FusedTables* fused_;
  const Intended& intended_;
  const CompareOptions& options_;
  std::vector<ComparedTypes> casts_;
};

}  // namespace

bool check_types_by_name(const Store& tested, const Store& source, const Comparing& c,
                         const std::vector<bool>& takes_type) {
  TypeCheck check(c.options.types);
  check.add_by_name(tested, source, takes_type);
  return check.add_to(c.report);
}

Intended intended_casts(const Store& tested, const Store& source) {
  Intended intended;
  intended.type = [&tested, &source](i64 t) {
    DType stored = source.dtype(t);
    i64 at = find_tensor(tested, source.name(t));
    return at >= 0 && is_castable(stored) && is_castable(tested.dtype(at)) ? tested.dtype(at) : stored;
  };
  return intended;
}

bool against_names(const Store& tested, const Store& source, const FusedTables* fused, const Comparing& c,
                   const Intended& intended) {
  Headers headers(tested, source, fused, intended, c.options);
  std::set<i64> apart = headers.report_unlike(c.comparison);
  apart.merge(compare_read_values(tested, source, apart, c.comparison, c.observer));
  if (c.options.counting.all) headers.note_empty(apart, c.comparison);
  NamedChunks chunks(tested, source, apart);
  if (!c.options.counting.all) {  // which has the types of every tensor, and casts none of the values
    note_casts(headers.casts(), c.observer);
    warn_of_casts(headers.casts(), c.report);
  }
  if (c.report.compared_as.empty()) c.report.compared_as = kComparedByName;
  auto job = [&](const ChunkList& some) { return reshard_job(source, some, fused); };
  auto made_of = [](i32 tensor) { return std::vector<i64>{tensor}; };
  auto name = [&](i32 tensor) { return std::string(source.name(tensor)); };
  auto by_values = [&](i32 tensor, i32 key) {
    return compare_read_values(tested, source, tensor, key, c.comparison, c.observer);
  };
  const bool equal = c.comparison.run(
      {tested, chunks, source, tested.tensor_count(), name, job, made_of, by_values}, c.report);
  if (c.options.counting.when_compared) c.options.counting.when_compared(tested, source, c.report);
  return equal;
}

}  // namespace mckpt::impl
