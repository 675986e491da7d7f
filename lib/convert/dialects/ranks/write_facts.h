// The facts of a run as a file of a Megatron rank has them, in front of the model: args, checkpoint_version
// and iteration.
//
//   {"args": Namespace(tensor_model_parallel_size=2, rank=3, ...), "checkpoint_version": 3.0, "iteration": 10, "model": ...}
#pragma once

#include <optional>

#include "convert/dialects/ranks/plan.h"
#include "convert/facts/run_facts.h"
#include "core/base/int.h"

namespace mckpt::impl {

class ModelMap;
struct RunEntries;

// The result, as far as the writer needs it beside the facts. All references outlive the struct, and what it
// is given to.
struct RanksResult {
  const ModelMap& map;
  const RunEntries& entries;  // of config.json, for args where the source has none
  const RankRun& run;
  i64 source_rows = 0;             // of the vocabulary in the source
  std::optional<i64> iteration{};  // none: the run that loads the files begins
};

// The args come from the facts, with the changes of the conversion, or are made of the model. Notes say which
// args keep values that may be wrong.
RankPlan::WriteFront rank_front(const RunFacts& facts, const RanksResult& result, Notes& notes);

}  // namespace mckpt::impl
