// The common state of a torch_dist checkpoint, the file common.pt: what every rank of a run has, as one dict.
//
//   {"args": Namespace(...), "checkpoint_version": 3.0, "iteration": 10,
//    "optimizer": {"optimizer": {"param_groups": [...]}, "param_state_sharding_type": ...},
//    "opt_param_scheduler": {...}, "num_floating_point_operations_so_far": 0,     what the source has of these
//    "content_metadata": {"non_homogeneous_layers": False, ...}}
//
// Newer versions of Megatron (0.19) save the same dict as an object, common_state/shard_0_1; they read the
// file first, and older versions (0.16) read nothing else.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

// Values by name, each a whole pickle of protocol 2, in the order in which they are written.
using PickledEntries = std::vector<std::pair<std::string, std::string>>;

// Says how the tensors are stored: a run that loads the checkpoint lays its own out alike.
struct TorchDistContent {
  bool stacked = false;    // all layers are one tensor
  std::string state_form;  // "fully_sharded_model_space"; "": the checkpoint has no states of the optimizer
};
std::string pickle_content(const TorchDistContent& content);

// The file common.pt.
std::string common_file(const PickledEntries& entries);
// The file metadata.json, which marks a complete torch_dist checkpoint.
std::string torch_dist_mark();

}  // namespace mckpt::impl
