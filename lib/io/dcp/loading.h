// What torch stumbles over when it loads a folder of which every box and byte is in order, because mckpt has
// no need of it: the paths of planner_data, by which torch rebuilds the saved dict, how the keys of
// storage_data are written, and properties of tensors beside their data type.
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

// Of the folder's .metadata, which is read once more: to list tensors nobody should pay for this. Nothing
// where there is none.
std::vector<Finding> check_loading(const Folder& folder);

// Of a pickle that parse_dcp_metadata() takes.
std::vector<Finding> loading_faults(std::span<const u8> pickle);

}  // namespace mckpt::impl
