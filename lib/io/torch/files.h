// Several torch files of one folder: what their names say, and their headers, read in parallel.
//
//   model_world_size_4_rank_1.pt       group "model", 4 ranks, rank 1
//   pytorch_model-00001-of-00002.bin   one of 2 shards
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/int.h"
#include "io/torch/file.h"

namespace mckpt::impl {

class Folder;

// A file and its headers, or the reason why it cannot be read.
struct OpenedTorchFile {
  std::string path;  // inside the folder
  i64 bytes = -1;
  std::optional<TorchFile> file{};   // nothing when it cannot be read
  std::optional<Finding> problem{};  // then this says why
};

// "model_world_size_4_rank_1.pt" -> group "model", world 4, rank 1. -1: the name does not say.
struct RankName {
  std::string group;
  i64 world = -1, rank = -1;
};
// Nothing for a file of another name.
std::optional<RankName> rank_name(std::string_view file);

// pytorch_model-00001-of-00002.bin -> 2; -1 for a file of another name.
i64 shard_count(std::string_view file);

// In the order of the names. A file that cannot be read does not stop the others.
std::vector<OpenedTorchFile> open_torch_files(const Folder& folder, std::vector<std::string> names);

}  // namespace mckpt::impl
