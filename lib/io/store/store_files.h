// The data files of a store, opened when they are first read. Only so many are open at a time: a checkpoint
// may have thousands.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "core/base/int.h"
#include "io/file/file.h"

namespace mckpt::impl {

class Folder;
class Store;

class StoreFiles {
 public:
  // The store must outlive it.
  explicit StoreFiles(const Store& store);
  ~StoreFiles();

  // Thread-safe. The file stays open as long as somebody holds it. Throws as InputFile does, and kReadFailed
  // when the file is not as long as the store found it.
  std::shared_ptr<const InputFile> open(i32 file) const;

 private:
  static constexpr std::size_t kMostOpen = 128;

  const Store& store_;
  std::unique_ptr<const Folder> folder_;  // none when the store is one file
  mutable std::mutex mutex_;
  mutable std::vector<std::shared_ptr<const InputFile>> files_;
  mutable std::list<i32> open_;  // the one opened last is in front
};

// One of those files as bytes that stay where they are while files are opened and closed behind them.
class StoreFileBytes final : public ByteSource {
 public:
  StoreFileBytes(const StoreFiles& files, i32 file, i64 size)
      : ByteSource(size), files_(files), file_(file) {}

 private:
  void read_inside(i64 offset, std::span<u8> to) const override { files_.open(file_)->read(offset, to); }
  void read_block_inside(i64 offset, std::span<u8> to) const override {
    files_.open(file_)->read_block(offset, to);
  }

  const StoreFiles& files_;
  i32 file_;
};

// All files of a store, as copy jobs read them.
class StoreBytes {
 public:
  explicit StoreBytes(const Store& store);
  const ByteSource& operator[](i32 file) const { return bytes_[static_cast<std::size_t>(file)]; }
  const StoreFiles& files() const { return files_; }

 private:
  StoreFiles files_;
  std::vector<StoreFileBytes> bytes_;
};

}  // namespace mckpt::impl
