// The objects of a run that fsdp_dtensor has a place for, from what other formats keep together: a dict
// becomes one object for each of its fields, as torch.distributed.checkpoint flattens it.
//
//   opt_param_scheduler {max_lr, ...}                -->  opt_param_scheduler.max_lr, ...
//   optimizer.param_to_group_meta {param: {lr, ...}} -->  optimizer.param_to_group_meta.<param>.lr, ...
//   args, iteration, checkpoint_version              -->  args, iteration, checkpoint_version
#pragma once

#include <functional>
#include <string>

#include "io/pickle/value.h"

namespace mckpt::impl {

// Calls `take` for each object that the entry `name` becomes; returns false, without a call, if there is no
// place for the entry.
bool take_run_object(std::string_view name, PickleValue value,
                     const std::function<void(std::string name, PickleValue value)>& take);

}  // namespace mckpt::impl
