// Memory of a GPU, and pinned memory of the host, which is copied to and from the GPU at the full
// speed of the link. Memory of the host that is not pinned is copied by the driver through a buffer of its
// own.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>

#include "live/device/memory.h"

namespace mckpt::impl {

// Memory of the GPU, from its driver. Allocations are slow and wait for the GPU: see KeptMemory. Thread-safe.
class GpuMemory final : public Memory {
 public:
  explicit GpuMemory(void* gpu) : gpu_(gpu) {}
  u8* allocate(i64 bytes) override;
  void check_room(i64 bytes) const override;
  void release(u8* data) override;

 private:
  void* gpu_;  // of the cuda module
};

// Pinned memory of the host. An allocation costs time for each of its pages. Thread-safe.
class PinnedMemory final : public Memory {
 public:
  explicit PinnedMemory(void* gpu);
  ~PinnedMemory() override;
  u8* allocate(i64 bytes) override;
  void check_room(i64 bytes) const override;
  void release(u8* data) override;

 private:
  class Pages;
  void* gpu_;
  std::mutex mutex_;
  std::unordered_map<u8*, std::unique_ptr<Pages>> pages_;
};

}  // namespace mckpt::impl
