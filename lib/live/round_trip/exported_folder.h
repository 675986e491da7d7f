// The folder into which a live model is exported only for a comparison: a temporary folder that is removed
// afterwards, and the differences between it and the model's own files.
#pragma once

#include <exception>
#include <string>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

class Comm;
class Observer;
struct HfModel;

// A temporary folder that every rank knows. Rank 0 makes and removes it; if a rank is lost or fails, the rank
// that ends the job removes it.
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
  int exceptions_ = std::uncaught_exceptions();
};

// The result of one rank's share of the tensors: the bytes compared, and a line for each difference.
struct FolderComparison {
  i64 bytes = 0;
  std::vector<std::string> differences;
};
// Compares this rank's share of the tensors byte by byte; rank 0 also compares names, types and shapes. All
// ranks call it, and none waits for another. pre: the export into `folder` is complete, and the source has
// data.
FolderComparison compare_share(const HfModel& source, const std::string& folder, const Comm& ranks,
                               int threads, Observer& observer);

}  // namespace mckpt::impl
