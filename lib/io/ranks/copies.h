// Whether copies of a tensor in the files of several ranks have the same bytes. Opening reads headers only,
// so checksums decide; where a file has none, small tensors are read.
//
//   rank 0  "norm.bias"  record of 64 bytes, CRC-32 9e2a01d7
//   rank 1  "norm.bias"  record of 64 bytes, CRC-32 9e2a01d7      equal
//   rank 1  "norm.bias"  no checksum, 64 bytes                    read and compared
//   rank 1  "cache"      no checksum, 2 GiB                       unknown
#pragma once

#include <string>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

class Folder;
class TorchStore;

// Compares rows of a store whose files are in `folder`.
class TorchCopies {
 public:
  TorchCopies(const TorchStore& store, const Folder& folder) : store_(store), folder_(folder) {}

  // A row of a file's table.
  struct Row {
    i32 file;
    i64 row;
  };
  enum class Answer : u8 { kEqual, kDifferent, kUnknown };

  // Copies of different types or sizes are different. Throws kReadFailed.
  Answer compare(Row a, Row b);
  // The first item of the row as text. pre: there is one.
  std::string text(Row r) const;

 private:
  Answer compare_sums(Row a, Row b) const;
  std::vector<u8> items_of(Row r) const;

  const TorchStore& store_;
  const Folder& folder_;
  i64 readable_bytes_ = i64{16} << 20;  // how many more are read
};

}  // namespace mckpt::impl
