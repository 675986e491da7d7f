// The facts of a run as the objects that Megatron-FSDP v2 saves: the groups of its optimizer, as a list. They
// are made of the options of each parameter:
//
//   <param> lr, betas, ...; equal ones are a group   -->  optimizer.param_groups.0.lr, .betas, ...
//                                                         optimizer.param_groups.0.params  [<param>, ...]
//   <param> step                                     -->  optimizer.state.<param>.step, a tensor
//
// A source that has such a list keeps it. For all other facts (args, iteration, schedules, random states) v2
// has no place.
#pragma once

#include <functional>
#include <string>

#include "convert/dialects/fsdp/plan.h"
#include "convert/facts/run_facts.h"
#include "core/base/int.h"
#include "io/dcp/write/layout.h"

namespace mckpt::impl {

class KeyTable;

// Where the objects of a source were in the dict that was saved.
struct SavedPlaces {
  std::function<DcpName(const std::string& object)> named;
  std::function<i64(std::string_view object)> place;
};

// The objects. `states` are the states that the result has, by key of the table. Records of objects that are
// copied are added to `out` when the layout gets them; the facts and `out` outlive the result.
SharedObjects group_list(const RunFacts& facts, const KeyTable& keys, const Companions& states,
                         const SavedPlaces& places, bool weights_only, WrittenFacts& out);

}  // namespace mckpt::impl
