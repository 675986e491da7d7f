// Where a copy job writes to.
#pragma once

#include <span>

#include "core/base/int.h"

namespace mckpt::impl {

// Receives what a job writes: the files of a result, or a comparison with existing files.
class CopySink {
 public:
  virtual ~CopySink() = default;
  // Thread-safe. No byte is written twice, except after CopyOptions::leave_out left a task out.
  virtual void write(i32 file, i64 offset, std::span<const u8> bytes) = 0;
  // Whether the job is to write these bytes; if not, it need not read what they are made of. Thread-safe.
  virtual bool wants(i32 file, i64 offset, i64 bytes) {
    (void)file, (void)offset, (void)bytes;
    return true;
  }
};

}  // namespace mckpt::impl
