// The data files of a store, opened when they are first read. A checkpoint may have thousands of files, more
// than a process may open: at most 128 are kept open, and the one that was opened first is closed first.
//
//   StoreFiles files(store);
//   files.open(3)->read(4160, to);       file 3 of store.files()
//
//   StoreBytes bytes(store);
//   bytes[3].read(4160, to);             the same, as a ByteSource that outlives any closing and opening
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

// Shared by all threads of a command's work.
class StoreFiles {
 public:
  // For work that begins and ends: a file is looked at when it is opened. Or for as long as a program likes:
  // each open() looks whether the file is still the one that was opened first.
  enum class For { kOneJob, kLong };

  // The store must outlive it.
  explicit StoreFiles(const Store& store, For use = For::kOneJob);
  ~StoreFiles();

  // The file stays open as long as the caller holds it. Throws what InputFile throws, and kReadFailed if the
  // file does not have the size that the store found, or was changed.
  std::shared_ptr<const InputFile> open(i32 file) const;

 private:
  static constexpr std::size_t kMostOpen = 128;

  const Store& store_;
  const bool look_again_;
  std::unique_ptr<const Folder> folder_;  // none when the store is one file
  mutable std::mutex mutex_;
  mutable std::vector<std::shared_ptr<const InputFile>> files_;
  mutable std::list<i32> open_;  // the one opened last is in front
};

// One file of the store as a ByteSource; the file behind it is opened for each read if it is not open.
// `files` outlives it.
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

// All files of a store, as copy jobs read them. The store outlives it. Thread-safe.
class StoreBytes {
 public:
  explicit StoreBytes(const Store& store);
  const ByteSource& operator[](i32 file) const { return bytes_[file]; }
  const StoreFiles& files() const { return files_; }

 private:
  StoreFiles files_;
  std::vector<StoreFileBytes> bytes_;
};

}  // namespace mckpt::impl
