// A lane is a stream. A scatter is cut into batches (scatter_plan.h), each of which is passed by value to one
// launch of the kernel.
#include "live/cuda/lane.h"

#include "core/base/error.h"
#include "live/cuda/calls.h"
#include "live/cuda/scatter_plan.h"
#include "runtime/modules/module.h"

namespace mckpt::impl {

const MckptCudaTable& cuda() {
  static const MckptCudaTable& table = module_functions<MckptCudaTable>("cuda");
  return table;
}

void check_cuda(const char* error, const char* call) {
  if (error) throw Error(Code::kRanksFailed, cat("CUDA: ", call, ": ", escaped(error, 500)));
}

CudaLane::CudaLane(void* gpu) { check_cuda(cuda().make_lane(gpu, &lane_, &stream_), "making a stream"); }

CudaLane::~CudaLane() { cuda().release_lane(lane_); }

void CudaLane::copy(const u8* from, u8* to, i64 bytes) {
  if (bytes > 0) check_cuda(cuda().copy(lane_, from, to, bytes), "copying");
}

void CudaLane::upload(std::span<const u8> from, u8* to) { copy(from.data(), to, std::ssize(from)); }

void CudaLane::download(const u8* from, std::span<u8> to) { copy(from, to.data(), std::ssize(to)); }

void CudaLane::zero(u8* at, i64 bytes) {
  if (bytes > 0) check_cuda(cuda().zero(lane_, at, bytes), "writing zeros");
}

void CudaLane::scatter(std::span<const ItemCopy> copies) {
  for_each_batch(copies, [&](const ScatterBatch& batch) {
    check_cuda(cuda().scatter(lane_, &batch), "starting the kernel that moves items");
  });
}

void CudaLane::follow(Lane& other) {
  check_cuda(cuda().follow(lane_, cuda_lane(other).lane_), "following a stream");
}

void CudaLane::wait() { check_cuda(cuda().wait(lane_), "waiting for a stream"); }

bool CudaLane::done() {
  bool done = false;
  check_cuda(cuda().done(lane_, &done), "asking a stream");
  return done;
}

}  // namespace mckpt::impl
