// Memory for one matrix, zeros at first. Large memory is the kernel's as soon as it is given up: an allocator
// would keep it for the thread that had it, and with many threads most of a model's largest matrices would
// stay.
#pragma once

#include <span>
#include <utility>

#include "core/base/int.h"

namespace mckpt::impl {

class LargeBytes {
 public:
  LargeBytes() = default;
  explicit LargeBytes(i64 bytes);  // throws std::bad_alloc
  LargeBytes(LargeBytes&& o) noexcept { *this = std::move(o); }
  LargeBytes& operator=(LargeBytes&& o) noexcept {
    std::swap(data_, o.data_), std::swap(size_, o.size_);
    return *this;
  }
  ~LargeBytes();

  u8* data() const { return data_; }
  i64 size() const { return size_; }
  operator std::span<u8>() const { return {data_, static_cast<std::size_t>(size_)}; }

 private:
  u8* data_ = nullptr;
  i64 size_ = 0;
};

}  // namespace mckpt::impl
