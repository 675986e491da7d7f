// Faults over which torch stumbles when it loads a folder whose boxes and bytes are all in order. mckpt needs
// none of it, so only `verify` looks: the paths of planner_data, by which torch rebuilds the saved dict, the
// form of the keys of storage_data, and the properties of tensors beside their data type.
//
//   planner_data   "model.module.a.b"   -> ("model", "module.a.b")
//                  "optim.state.0.step" -> ("optim", "state", 0, "step")
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

class Folder;
struct Finding;

// Checks the folder's .metadata, which is read once more: listing tensors should not pay for this. Returns
// nothing where there is none.
std::vector<Finding> check_loading(const Folder& folder);

// Checks the bytes of a .metadata. pre: parse_dcp_metadata() accepts them.
std::vector<Finding> loading_faults(std::span<const u8> pickle);

}  // namespace mckpt::impl
