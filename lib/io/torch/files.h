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

// The name that the file had when torch.save wrote it, with the ending that it has now; "" where the file
// does not say it. pre: it could be read.
std::string saved_as(const OpenedTorchFile& file);

// The finding for a file of a rank that has the name of another rank's file now. pre: saved_as() is not "".
Finding moved_file(const OpenedTorchFile& file, i64 rank);

}  // namespace mckpt::impl
