// What a file of a Megatron rank has in front of the model: args, checkpoint_version and iteration.
//
//   {"args": Namespace(tensor_model_parallel_size=2, rank=3, ...), "checkpoint_version": 3.0, "iteration": 10, "model": ...}
#pragma once

#include <optional>

#include "convert/dialects/ranks/rank_plan.h"
#include "core/base/int.h"

namespace mckpt::impl {

class Notes;
struct Opened;

// The args are those of the source's run, with what the conversion changes, or made of the model where the source
// has none. `source` and `run` outlive the result. Notes say which args keep values that may be wrong.
RankPlan::WriteFront rank_front(const Opened& source, const RankRun& run, std::optional<i64> iteration,
                                Notes& notes);

}  // namespace mckpt::impl
