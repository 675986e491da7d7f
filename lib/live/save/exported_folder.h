// The folder into which a live model is exported only for a comparison: a temporary folder that is removed
// afterwards, and the differences between it and the model's own files.
#pragma once

#include <string>
#include <vector>

#include "hf/model.h"
#include "io/copy/engine.h"
#include "runtime/comm/comm.h"

namespace mckpt::impl {

// A temporary folder that every rank knows. Rank 0 makes and removes it; if rank 0 is lost, one of the others
// removes it.
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

// What one rank found in its share of the tensors: the bytes compared, and a line for each difference.
struct FolderComparison {
  i64 bytes = 0;
  std::vector<std::string> differences;
};
// Compares this rank's share of the tensors byte by byte; rank 0 also compares names, types and shapes. Not
// collective. pre: the export into `folder` is complete; the source has data.
FolderComparison compare_share(const HfModel& source, const std::string& folder, const Comm& ranks,
                               CopyOptions how);

}  // namespace mckpt::impl
