// The dict that each tensor of a checkpoint was an entry of, where the format keeps it. A name alone does not
// say which of its dots were in the keys:
//
//   planner_data ("model", "bert.pooler.w")           "model."     {"model": {"bert.pooler.w": T}}
//   a pickle     {"model.norm.weight": T}             ""           the dict that was saved itself
//   planner_data ("optim", "state", "norm.w", "step") "optim.state.norm.w."
//
// DeepSpeed ZeRO keeps no dicts, and lists what the model has.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "io/dcp/write/paths.h"

namespace mckpt::impl {

class Store;

// By tensor, the first part of its name, which leads to its dict: "" or up to a dot behind a key, and what
// the store has in front of the names of a file. The views point into the names of the store. Empty if the
// format, or this checkpoint of it, does not say so of every tensor.
std::vector<std::string_view> saved_dicts(const Store& store);

// By tensor, whether the files list it as the model's, whatever its name is. Empty if the format has no such
// list.
std::vector<bool> listed_of_model(const Store& store);

// The paths of a DCP folder's items, as dcp_paths(); nothing also where they contradict the names, which
// others report.
std::optional<DcpPaths> saved_paths(const Store& store);

}  // namespace mckpt::impl
