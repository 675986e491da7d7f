// The headers of several torch files of one folder, read in parallel.
#pragma once

#include <optional>
#include <string>
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

// In the order of the names. A file that cannot be read does not stop the others.
std::vector<OpenedTorchFile> open_torch_files(const Folder& folder, std::vector<std::string> names);

}  // namespace mckpt::impl
