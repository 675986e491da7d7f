// CompareSink: takes what a copy job would write and compares it with what is there.
#pragma once

#include <mutex>
#include <vector>

#include "io/copy_job.h"
#include "io/store_files.h"

namespace mckpt {

class CompareSink final : public CopySink {
 public:
  // The job's files are those of the store, which outlives this.
  explicit CompareSink(const Store& there) : bytes_(there) {}

  void write(i32 file, i64 offset, std::span<const u8> bytes) override;

  // A stretch of a file in which something differs, at its first byte that does.
  struct Difference {
    i32 file = 0;
    i64 offset = 0, end = 0;
  };
  // In the order of the files; the first kMost of them.
  std::vector<Difference> differences();
  static constexpr std::size_t kMost = 1 << 16;

 private:
  StoreBytes bytes_;
  std::mutex mutex_;
  std::vector<Difference> differences_;
};

}  // namespace mckpt
