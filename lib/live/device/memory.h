// Memory: where the bytes of live tensors come from. What holds the weights lives as long as they do; what an
// unsharded module needs comes and goes.
#pragma once

#include <mutex>
#include <unordered_map>
#include <utility>

#include "core/base/int.h"

namespace mckpt::impl {

class Memory {
 public:
  virtual ~Memory() = default;
  // Aligned by 256. Throws kOutOfMemory that says what was needed and what was free. pre: bytes > 0.
  virtual u8* allocate(i64 bytes) = 0;
  // Throws the same error if so much memory is not available, as far as this is known beforehand.
  virtual void check_room(i64 bytes) const = 0;
  virtual void release(u8* data) = 0;
};

// The process's own memory. Thread-safe.
class HostMemory final : public Memory {
 public:
  u8* allocate(i64 bytes) override;
  void check_room(i64 bytes) const override;
  void release(u8* data) override;

  i64 held_bytes() const;  // now
  i64 peak_bytes() const;  // at most at a time

 private:
  mutable std::mutex mutex_;
  std::unordered_map<u8*, i64> blocks_;
  i64 held_ = 0, peak_ = 0;
};

// A stretch of a Memory that is given back when this ends.
class Block {
 public:
  Block() = default;
  Block(Memory& memory, i64 bytes) : memory_(&memory), data_(memory.allocate(bytes)), bytes_(bytes) {}
  Block(Block&& from) noexcept { swap(from); }
  Block& operator=(Block&& from) noexcept {
    Block(std::move(from)).swap(*this);
    return *this;
  }
  ~Block() {
    if (data_) memory_->release(data_);
  }

  u8* data() const { return data_; }  // null: there is none
  i64 bytes() const { return bytes_; }

 private:
  void swap(Block& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
  }

  Memory* memory_ = nullptr;
  u8* data_ = nullptr;
  i64 bytes_ = 0;
};

}  // namespace mckpt::impl
