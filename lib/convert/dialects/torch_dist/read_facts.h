// The facts of the run that wrote a torch_dist checkpoint. They are entries of its common state: the groups
// of the optimizer become options of each parameter, and what else a fact is for stays as it is.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "convert/facts/run_facts.h"

namespace mckpt::impl {

struct ModelParameter;

// `with_states`: the parameters that have states, or none where options are not wanted. Options are given for
// all of them, or none if the group of one is not certain: then the facts have the groups. Objects that a run
// wrote beside the common state are hidden. Throws what reading the common state throws.
RunFacts torch_dist_facts(const Store& store, std::span<const ModelParameter* const> with_states = {});
// RunFacts::iteration() of these, without reading the others.
std::optional<i64> torch_dist_iteration(const Store& store);

// The facts of a common state that is read already. `args`: the args of the run; null: there are none. `step`
// is called where options are given: as in RunFacts::add_options().
RunFacts facts_of_common_state(std::shared_ptr<const PickleValue> common, const PickleValue* args,
                               std::span<const ModelParameter* const> with_states,
                               const std::function<std::string()>& step);

}  // namespace mckpt::impl
