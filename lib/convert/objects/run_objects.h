// The objects of a whole run that fsdp_dtensor has a place for, out of what other formats keep together: a
// dict becomes an object for each of its fields, as torch.distributed.checkpoint flattens it.
//
//   opt_param_scheduler {max_lr, ...}                     opt_param_scheduler.max_lr, ...
//   optimizer.param_to_group_meta {param: {lr, ...}} -->  optimizer.param_to_group_meta.<param>.lr, ...
//   args, iteration, checkpoint_version                   the same
#pragma once

#include <functional>
#include <string>

namespace mckpt::impl {

class PickleValue;

// Calls `take` for each object that the entry becomes; false where there is no place for it.
bool take_run_object(std::string_view name, PickleValue value,
                     const std::function<void(std::string name, PickleValue value)>& take);

}  // namespace mckpt::impl
