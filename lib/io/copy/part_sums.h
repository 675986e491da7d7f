// PartSums: the CRC-32 sums of tensors that are written part by part, by several threads and ranks.
#pragma once

#include <mutex>
#include <span>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

class WrittenSums;

class PartSums {
 public:
  // Where a tensor's data go.
  struct Place {
    i32 file;
    i64 offset, bytes;
  };
  struct Part {
    i32 file;
    i64 tensor;  // the offset of the whole
    i64 offset, bytes;
    u32 crc32;
  };

  explicit PartSums(std::vector<Place> tensors);

  // Bytes that were written, of any number of tensors. Thread-safe.
  void add(i32 file, i64 offset, std::span<const u8> bytes);
  // For those that gather the parts of several ranks.
  std::vector<Part>& parts() { return parts_; }
  // The sums of whole tensors. pre: all parts are there, each once.
  void join_into(WrittenSums& sums);

 private:
  std::vector<Place> tensors_;  // in the order of the files
  std::mutex mutex_;
  std::vector<Part> parts_;
};

}  // namespace mckpt::impl
