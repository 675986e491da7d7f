// metadata.json, the mark of a torch_dist checkpoint: Megatron writes it last, and loads no folder whose mark
// it does not know.
//
//   {"sharded_backend": "torch_dist", "sharded_backend_version": 1, "common_backend": "torch", "common_backend_version": 1}
//
// All but the first may be left out.
#pragma once

#include <string_view>
#include <vector>

namespace mckpt::impl {

class Folder;
struct Finding;

inline constexpr std::string_view kMarkOfTorchDist = "metadata.json";

// Returns nothing for a mark that Megatron takes, otherwise a warning: the tensors can be read all the same.
// pre: the folder has the file.
std::vector<Finding> check_mark(const Folder& folder);

}  // namespace mckpt::impl
