// Compares tensors of the same names, box by box. Tensors that only one side has, or that differ in type or
// shape, are reported and not compared.
#include "convert/compare/against.h"
#include "convert/compare/comparison.h"
#include "convert/compare/tensor_differences.h"
#include "convert/jobs/chunk_jobs.h"
#include "convert/keys/stored_chunks.h"
#include "core/base/error_code.h"
#include "core/base/text.h"
#include "io/store/finding.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

// The finding about one such tensor.
Finding unlike_finding(const Store& tested, const Store& source, const TensorDifference& d) {
  return {.code = Code::kUnequal,
          .tensor = std::string(d.one < 0 ? source.name(d.other) : tested.name(d.one)),
          .message = d.one < 0     ? "only the other side has this tensor"
                     : d.other < 0 ? "the other side does not have this tensor"
                                   : cat("the tensor is ", type_and_shape(tested, d.one),
                                         ", on the other side ", type_and_shape(source, d.other))};
}

// Reports the tensors that are missing on one side or differ in type or shape, other than in the rows of the
// vocabulary. Returns their numbers in the tested store.
std::set<i64> report_unlike(const Store& tested, const Store& source, const FusedTables* fused,
                            Comparison& comparison, const std::function<TensorNames()>& dropped) {
  std::set<i64> tensors;
  std::optional<TensorNames> by_rule;
  for (const TensorDifference& d : tensor_differences(tested, source)) {
    if (d.one < 0 && dropped && !by_rule) by_rule = dropped();
    if (d.one < 0 && by_rule && by_rule->contains(source.name(d.other))) {
      comparison.set_aside(std::string(source.name(d.other)));
      continue;
    }
    bool resized = d.other >= 0 && fused && !fused->resized.empty() && fused->resized[d.other];
    if (d.one >= 0 && resized && tested.dtype(d.one) == source.dtype(d.other)) continue;
    if (d.one >= 0) tensors.insert(d.one);
    comparison.leave_out(unlike_finding(tested, source, d), d.one >= 0);
  }
  return tensors;
}

}  // namespace

bool against_names(const Store& tested, const Store& source, const FusedTables* fused, const Comparing& c,
                   const std::function<TensorNames()>& dropped) {
  NamedChunks chunks(tested, source, report_unlike(tested, source, fused, c.comparison, dropped));
  auto job = [&](const ChunkList& some) { return reshard_job(source, some, fused); };
  auto made_of = [](i32 tensor) { return std::vector<i64>{tensor}; };
  auto name = [&](i32 tensor) { return std::string(source.name(tensor)); };
  return c.comparison.run({tested, chunks, source, tested.tensor_count(), name, job, made_of}, c.report);
}

}  // namespace mckpt::impl
