// Memory: where the bytes of live tensors come from. A model has two kinds: memory of weights, which lives as
// long as the model, and memory of unsharded modules, which is allocated and freed again and again.
//
//   HostMemory      the process's memory, with a check of free memory        GpuMemory      live/cuda/memory.h
//   KeptMemory      keeps freed blocks for the next use                      PinnedMemory   live/cuda/memory.h
#pragma once

#include <mutex>
#include <unordered_map>
#include <utility>

#include "core/base/int.h"

namespace mckpt::impl {

// The interface. release() gets what allocate() returned, exactly once.
class Memory {
 public:
  virtual ~Memory() = default;
  // Memory aligned to 256 bytes. Throws kOutOfMemory with the needed and the free bytes. pre: bytes > 0.
  virtual u8* allocate(i64 bytes) = 0;
  // Throws that error now if so much memory is known not to be available.
  virtual void check_room(i64 bytes) const = 0;
  virtual void release(u8* data) = 0;
};

// The process's own memory, in whole pages. Thread-safe.
class HostMemory final : public Memory {
 public:
  u8* allocate(i64 bytes) override;
  void check_room(i64 bytes) const override;
  void release(u8* data) override;

  i64 held_bytes() const;  // now
  i64 peak_bytes() const;  // the most that was held at one time

 private:
  mutable std::mutex mutex_;
  std::unordered_map<u8*, i64> blocks_;
  i64 held_ = 0, peak_ = 0;
};

// A block of a Memory, which is released when the Block is destroyed. Movable; the Memory outlives it.
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
