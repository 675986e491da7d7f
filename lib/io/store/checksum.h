// A CRC-32 that a format keeps of bytes of its files.
#pragma once

#include <string>

#include "core/base/int.h"

namespace mckpt::impl {

// A stretch of a file for which the format stores a CRC-32 (zip's polynomial).
struct Checksum {
  i32 file = -1;
  i64 offset = 0;
  i64 bytes = 0;
  u32 crc32 = 0;
  std::string name{};  // of the record
  i64 tensor = -1;     // the tensor that the record belongs to; -1: not known, or none
};

}  // namespace mckpt::impl
