// ComputedBytes: bytes that are made of others when they are read, such as the scales of a weight.
//
//   weight   BF16 [4096, 4096]    33,554,432 bytes      --> read to make
//   scales   F32 [32, 32]              4,096 bytes
#pragma once

#include "core/base/int.h"
#include "io/file/file.h"

namespace mckpt::impl {

class ComputedBytes : public ByteSource {
 public:
  // Roughly, how many bytes are read to make all of these.
  virtual i64 bytes_read() const = 0;

 protected:
  using ByteSource::ByteSource;
};

}  // namespace mckpt::impl
