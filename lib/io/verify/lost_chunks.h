// The chunks that are not found: one finding for each file that is not there, whatever the number of its
// chunks, and one for each other chunk.
//
//   problem[MC1001]: __1_0.distcp: 19 chunks of 7 tensors are lost with the file
#pragma once

#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "core/base/text.h"
#include "io/store/findings.h"
#include "io/store/store.h"

namespace mckpt::impl {

// The findings are the same for any number of threads.
class LostChunks {
 public:
  explicit LostChunks(const Store& store) : store_(store) {}

  // Thread-safe. `finding`: what is said of the chunk alone.
  void add(const Chunk& chunk, i64 tensor, Finding finding) {
    if (chunk.file < 0 || store_.files()[chunk.file].bytes >= 0)
      return others_.add(tensor, std::move(finding));
    std::lock_guard lock(mutex_);
    File& lost = files_.try_emplace(chunk.file, File{std::move(finding), 0, {}}).first->second;
    lost.chunks++;
    lost.tensors.insert(tensor);
  }

  // In the order of the files, then of the tensors.
  std::vector<Finding> take() {
    std::vector<Finding> out;
    for (const auto& [file, lost] : files_) {
      out.push_back(lost.first);
      if (lost.chunks == 1) continue;
      out.back().tensor.clear();
      out.back().message = cat(counted(lost.chunks, "chunk"), " of ",
                               counted(std::ssize(lost.tensors), "tensor"), " are lost with the file");
    }
    for (Finding& f : others_.take()) out.push_back(std::move(f));
    return out;
  }

 private:
  struct File {
    Finding first;
    i64 chunks;
    std::set<i64> tensors;
  };
  const Store& store_;
  std::mutex mutex_;
  std::map<i32, File> files_;
  PlacedFindings others_;
};

}  // namespace mckpt::impl
