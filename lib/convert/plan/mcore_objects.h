// What a torch_dist checkpoint has beside its tensors, made of what a checkpoint of another format has:
//
//   source, one object each                              common.pt
//   args, iteration, ...                                 args with the new grid, iteration, ...
//   opt_param_scheduler.max_lr, ...                      opt_param_scheduler {max_lr, ...}
//   optimizer.param_to_group_meta.<param>.lr, ...        optimizer {optimizer {param_groups [{lr, ...}, ...]}}
//
// The optimizer of a run has one group for all parameters with equal options. With expert parallelism a run
// has an optimizer of its own for experts, so that the common state has two.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "convert/dialects/torch_dist/torch_dist_plan.h"
#include "convert/objects/common_state.h"
#include "core/base/int.h"
#include "core/base/notes.h"

namespace mckpt::impl {

class CheckpointModel;
class KeyTable;
struct HfModel;

// What the objects say of the result.
struct McoreRun {
  const TorchDistRun& run;
  std::optional<i64> iteration{};  // none: that of the source's object, or 0
  std::string state_form{};        // "": without states of the optimizer
};

struct McoreObjects {
  std::string common;  // the file common.pt
  i64 left_out = 0;    // objects of the source that torch_dist has no place for
  Notes notes;
};

McoreObjects mcore_objects(const HfModel& model, const McoreRun& result);
// Throws kNotHeld if the checkpoint has states, and does not say the options of each parameter.
McoreObjects mcore_objects(const CheckpointModel& source, const KeyTable& keys, const McoreRun& result);

}  // namespace mckpt::impl
