// The checkpoints in a folder that is none itself: a parent folder is opened if it has exactly one, and else
// the error lists them.
//
//   checkpoint-100/  pytorch_model_fsdp_0/.metadata  optimizer_0/.metadata  scheduler.pt
//     -> optimizer_0, pytorch_model_fsdp_0
//   run/  global_step_10/actor/model_world_size_2_rank_0.pt      -> global_step_10
#pragma once

#include <string>
#include <vector>

namespace mckpt::impl {

class Folder;

// The names of the HDF5 files in it, and of the folders in it that are checkpoints or have one below them, at
// most two levels down; in natural order. Hidden folders are not looked at, nor those that cannot be entered;
// at most 1,000 folders are.
std::vector<std::string> checkpoints_below(const Folder& folder);

// The only one of these names, or the only one that is a model; "" if there is none or several.
std::string only_checkpoint(const std::vector<std::string>& below);

}  // namespace mckpt::impl
