// Memory of the chosen GPU, and memory of the host that moves there at the full speed of the link.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>

#include "live/device/memory.h"

namespace mckpt::impl {

// Thread-safe.
class GpuMemory final : public Memory {
 public:
  u8* allocate(i64 bytes) override;
  void check_room(i64 bytes) const override;
  void release(u8* data) override;
};

// Pinned. Thread-safe.
class PinnedMemory final : public Memory {
 public:
  PinnedMemory();
  ~PinnedMemory() override;
  u8* allocate(i64 bytes) override;
  void check_room(i64 bytes) const override;
  void release(u8* data) override;

 private:
  class Pages;
  std::mutex mutex_;
  std::unordered_map<u8*, std::unique_ptr<Pages>> pages_;
};

}  // namespace mckpt::impl
