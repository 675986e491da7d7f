// CudaLane: the lane of a GPU, which is a stream of CUDA. All functions give work to the stream and return,
// except wait().
#pragma once

#include "live/device/device.h"

namespace mckpt::impl {

// Owns a stream of CUDA. The destructor waits for its work and ignores errors.
class CudaLane final : public Lane {
 public:
  explicit CudaLane(void* gpu);  // of the cuda module
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

// A lane of a GPU as what it is. pre: the lane was made by a CudaDevice.
inline CudaLane& cuda_lane(Lane& lane) { return static_cast<CudaLane&>(lane); }

}  // namespace mckpt::impl
