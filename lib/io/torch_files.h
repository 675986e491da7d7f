// The headers of several torch files of one folder, read side by side.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "io/folder.h"
#include "io/torch_file.h"

namespace mckpt {

struct OpenedTorchFile {
  std::string path;  // inside the folder
  i64 bytes = -1;
  std::optional<TorchFile> file{};   // nothing when it cannot be read
  std::optional<Finding> problem{};  // then this says why
};

// In the order of the names.
std::vector<OpenedTorchFile> open_torch_files(const Folder& folder, std::vector<std::string> names);

}  // namespace mckpt
