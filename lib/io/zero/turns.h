// The order of parameters in a group of DeepSpeed's round_robin_gradients: ranks take them in turns. The
// parts and param_shapes have this order; param_slice_mappings has the addresses that the parameters would
// have in the optimizer's own:
//
//   param_slice_mappings   a b c | c d e        in turns of two ranks   a c e b d   as in param_shapes
#pragma once

#include <span>
#include <string>

#include "io/zero/states.h"

namespace mckpt::impl {

// Compares the two orders, and the items of each parameter. Returns how they differ, "" if they do not.
// `addresses`: of all ranks that share the group, in their order. Parameters without items have no address,
// and take a turn all the same: then nothing is compared.
std::string turns_fault(
    std::span<const NameMap<std::string_view, ZeroOptimizerStates::Address>* const> addresses,
    const ZeroGroup& parameters);

}  // namespace mckpt::impl
