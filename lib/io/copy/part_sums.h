// PartSums: the CRC-32 sums of tensors that are written part by part, by several threads and ranks, where no
// single writer has all bytes of a tensor. The export of a live model uses it.
//
//   tensor:  bytes 100..699 of file 0
//   add(0, 100, 256 bytes)   by one thread        Part{0, 100, 100, 256, crc}
//   add(0, 356, 500 bytes)   by another           Part{0, 100, 356, 344, crc}, and a part of the next tensor
//   join_into(sums)          when all are there   one sum of 600 bytes
#pragma once

#include <mutex>
#include <span>
#include <vector>

#include "io/copy/written_sums.h"

namespace mckpt::impl {

// One object for each rank; the parts of all ranks are gathered into one object before they are joined.
class PartSums {
 public:
  // The place of a tensor's data in the result.
  struct Place {
    i32 file;
    i64 offset, bytes;
  };
  // Some bytes of one tensor, and their sum.
  struct Part {
    i32 file;
    i64 tensor;  // the offset of the tensor's data in the file, which identifies the tensor
    i64 offset, bytes;
    u32 crc32;
  };

  explicit PartSums(std::vector<Place> tensors);

  // Bytes that were written; they may belong to several tensors, and bytes of no tensor are ignored.
  // Thread-safe.
  void add(i32 file, i64 offset, std::span<const u8> bytes);
  // For gathering the parts of several ranks.
  std::vector<Part>& parts() { return parts_; }
  // Adds the sum of each whole tensor to `sums`. pre: the parts tile every tensor. Not thread-safe.
  void join_into(WrittenSums& sums);

 private:
  std::vector<Place> tensors_;  // in the order of the files
  std::mutex mutex_;
  std::vector<Part> parts_;
};

}  // namespace mckpt::impl
