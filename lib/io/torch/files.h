// Several torch files of one folder: what their names say, and their headers, read side by side.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/int.h"
#include "io/torch/file.h"

namespace mckpt::impl {

class Folder;

struct OpenedTorchFile {
  std::string path;  // inside the folder
  i64 bytes = -1;
  std::optional<TorchFile> file{};   // nothing when it cannot be read
  std::optional<Finding> problem{};  // then this says why
};

// "model_world_size_4_rank_1.pt" -> group "model", world 4, rank 1.
struct RankName {
  std::string group;
  i64 world = -1, rank = -1;
};
std::optional<RankName> rank_name(std::string_view file);

// pytorch_model-00001-of-00002.bin -> 2; -1 for a file of another name.
i64 shard_count(std::string_view file);

// In the order of the names.
std::vector<OpenedTorchFile> open_torch_files(const Folder& folder, std::vector<std::string> names);

}  // namespace mckpt::impl
