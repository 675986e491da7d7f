// Memory of the chosen GPU, and memory of the host that moves there at the full speed of the link.
#pragma once

#include <span>

#include "live/memory.h"

namespace mckpt {

// Thread-safe. Addresses are multiples of 256.
class GpuMemory final : public Memory {
 public:
  u8* allocate(i64 bytes) override;
  void release(u8* data) override;
};

// Pinned. Thread-safe. Making and giving back waits for the GPU: what is used again and again is kept.
class PinnedMemory final : public Memory {
 public:
  u8* allocate(i64 bytes) override;
  void release(u8* data) override;
};

// Pins memory that is there already, such as a mapped file, as long as this lives. Throws kRanksFailed where
// the driver refuses.
class PinnedRange {
 public:
  explicit PinnedRange(std::span<const u8> pages);  // pre: whole pages
  ~PinnedRange();
  PinnedRange(const PinnedRange&) = delete;
  PinnedRange& operator=(const PinnedRange&) = delete;

 private:
  void* begin_;
};

}  // namespace mckpt
