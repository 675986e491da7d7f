// The data files of a store, opened when they are first read. Only so many are open at a time: a checkpoint
// may have thousands.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "io/file.h"
#include "io/folder.h"
#include "io/store.h"

namespace mckpt {

class StoreFiles {
 public:
  // The store must outlive it.
  explicit StoreFiles(const Store& store);

  // Thread-safe. The file stays open as long as somebody holds it. Throws as InputFile does, and kReadFailed
  // when the file is not as long as the store found it.
  std::shared_ptr<const InputFile> open(i32 file) const;

 private:
  static constexpr std::size_t kMostOpen = 128;

  const Store& store_;
  std::optional<Folder> folder_;  // none when the store is one file
  mutable std::mutex mutex_;
  mutable std::vector<std::shared_ptr<const InputFile>> files_;
  mutable std::list<i32> open_;  // the one opened last is in front
};

}  // namespace mckpt
