// The paths of planner_data, by which torch rebuilds the nested dict that was saved:
//
//   "optim.state.0.step"  ->  ("optim", "state", 0, "step")
//
// A folder that is made of another keeps them: a name alone does not say which of its dots part keys.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/int.h"
#include "core/base/name_hash.h"

namespace mckpt::impl {

class Store;
struct DcpName;

// The names that torch's state dicts of an optimizer have: a state of a parameter, by its field ("exp_avg");
// and an option of a group, where groups are a list, so that the number is a place in it.
DcpName state_dict_state(std::string_view parameter, std::string_view field);
DcpName state_dict_group(i64 group, std::string_view field);

// By name of an item, the name with its path.
using DcpPaths = NameMap<std::string, DcpName>;
// Nothing where the folder has no paths (torch_dist), or is not a DCP folder with one .metadata. Throws
// kBadMetadata for a path that does not lead to its name, kNotHeld for one over keys that are neither texts
// nor integers.
std::optional<DcpPaths> dcp_paths(const Store& store);

// The names with their paths in the order of planner_data, which is the order of the dict that the last rank
// saved.
std::optional<std::vector<DcpName>> dcp_names(const Store& store);

}  // namespace mckpt::impl
