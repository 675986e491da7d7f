// The sums of one file and of the parts of it that belong to tensors, in one read from front to back:
//
//   file      | header |   part 0   | padding |   part 1   |
//   SHA-256   [------------------- of the file ------------]
//                      [---- of it --]         [---- of it -]
//   CRC-32    [--------]             [---------]               the stretches of no part
//
// Parts may overlap, as tensors do that share their memory. The stretches between them have the short sum,
// which says where a file changed once its SHA-256 has said that it did.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/base/int.h"
#include "io/listing/row.h"

namespace mckpt::impl {

class ByteSource;

// Bytes [offset, offset + bytes) of a file; at least one.
struct FilePart {
  i64 offset = 0, bytes = 0;
  auto operator<=>(const FilePart&) const = default;
};

struct FileSums {
  std::string sha256;
  std::vector<std::string> parts;     // SHA-256 of each part, in their order
  std::vector<SummedStretch> others;  // of no part, in the order of the file
};

// pre: the parts are ascending, no two are the same, and all are inside the file. Memory: 1 MiB, and a sum
// for each part that is under way. Throws kReadFailed, and what `progress` throws, which is called with the
// number of bytes after each read.
FileSums sum_file(const ByteSource& file, std::span<const FilePart> parts,
                  const std::function<void(i64 bytes)>& progress);

}  // namespace mckpt::impl
