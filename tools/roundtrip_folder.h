// What becomes of the folder that a round trip exports: it lies somewhere, and is compared with the source.
#pragma once

#include <string>
#include <vector>

#include "io/copy/engine.h"
#include "runtime/comm/comm.h"
#include "tools/hf_model.h"

namespace mckpt {

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

// One rank's share of the tensors, compared with those of the source.
struct FolderComparison {
  i64 bytes = 0;
  std::vector<std::string> differences;
};
FolderComparison compare_share(const HfModel& source, const std::string& folder, const Comm& ranks,
                               CopyOptions how);

}  // namespace mckpt
