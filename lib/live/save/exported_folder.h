// The folder that a live model is exported into for a comparison alone: a temporary one that is removed, and
// what of it differs from the model's own files.
#pragma once

#include <string>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

class Comm;
struct CopyOptions;
struct HfModel;

// A folder that every rank knows and rank 0 removes; one of the others where rank 0 is lost.
class ScratchFolder {
 public:
  explicit ScratchFolder(Comm& world);  // collective
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  Comm& world_;
  bool mine_;
  std::string path_;
};

// What one rank found in its share of the tensors.
struct FolderComparison {
  i64 bytes = 0;
  std::vector<std::string> differences;
};
FolderComparison compare_share(const HfModel& source, const std::string& folder, const Comm& ranks,
                               CopyOptions how);

}  // namespace mckpt::impl
