#include "live/cuda_memory.h"

#include "core/memory_room.h"
#include "live/cuda_calls.h"

namespace mckpt {
namespace {

Error out_of_gpu_memory(i64 bytes) {
  MckptGpuFacts gpu{};
  Error e(Code::kOutOfMemory, "there is not enough memory on the GPU for the weights of a module");
  e.expected(cat(bytes, " bytes")).help("more ranks, each with a GPU of its own; or --device cpu");
  if (!cuda().facts(&gpu))
    e.found(cat(gpu.free_bytes, " bytes free of ", gpu.total_bytes, ", on ", escaped(gpu.name)));
  return e;
}

}  // namespace

u8* GpuMemory::allocate(i64 bytes) {
  void* data = nullptr;
  check_cuda(cuda().allocate(bytes, &data), "allocating");
  if (!data) throw out_of_gpu_memory(bytes);
  return static_cast<u8*>(data);
}

// A GPU that has failed says so to whoever waits for it next.
void GpuMemory::release(u8* data) { cuda().release(data); }

u8* PinnedMemory::allocate(i64 bytes) {
  const char* what = "the pinned buffers of a GPU";
  check_memory_room(bytes, what);
  void* data = nullptr;
  check_cuda(cuda().allocate_host(bytes, &data), "allocating pinned memory");
  if (!data) throw out_of_memory(bytes, what);
  return static_cast<u8*>(data);
}

void PinnedMemory::release(u8* data) { cuda().release_host(data); }

PinnedRange::PinnedRange(std::span<const u8> pages) : begin_(const_cast<u8*>(pages.data())) {
  check_cuda(cuda().register_host(begin_, std::ssize(pages), true), "pinning memory");
}

PinnedRange::~PinnedRange() { cuda().unregister_host(begin_); }

}  // namespace mckpt
