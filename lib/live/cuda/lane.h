// The lane of a GPU: a stream of CUDA.
#pragma once

#include "live/device/device.h"

namespace mckpt::impl {

// pre of all: the GPU has been chosen.
class CudaLane final : public Lane {
 public:
  CudaLane();
  ~CudaLane() override;
  CudaLane(const CudaLane&) = delete;

  void upload(std::span<const u8> from, u8* to) override;
  void download(const u8* from, std::span<u8> to) override;
  void copy(const u8* from, u8* to, i64 bytes) override;
  void zero(u8* at, i64 bytes) override;
  void scatter(std::span<const ItemCopy> copies) override;
  void follow(Lane& other) override;
  void wait() override;

  bool done() override;
  void* stream() const { return stream_; }

 private:
  void *lane_ = nullptr, *stream_ = nullptr;
};

// A GPU's lanes are all of this kind.
inline CudaLane& cuda_lane(Lane& lane) { return static_cast<CudaLane&>(lane); }

}  // namespace mckpt::impl
