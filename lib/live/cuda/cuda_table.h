// The functions of the cuda module behind `MckptModule::functions`: the GPUs of this process, their memory
// and their lanes. Each function that can fail returns null or the text of the error
// (runtime/modules/module_abi.h). The module works with plain addresses and opaque pointers, so that mckpt
// itself is built without CUDA.
#pragma once

#include <cstdint>

namespace mckpt::impl {
struct ScatterBatch;
}

extern "C" {

enum { kMckptGpuIdBytes = 16 };

struct MckptGpuFacts {
  char name[256];  // "NVIDIA H200"
  std::int64_t free_bytes, total_bytes;
};

// The order of use: devices and id, then open, then all other functions from any thread. `gpu` is what open
// gave.
struct MckptCudaTable {
  std::uint32_t struct_size;
  // The number of GPUs that this process may use. Fails, with the reason, if there is no driver.
  const char* (*devices)(std::int32_t* count);
  // The identity of a GPU, kMckptGpuIdBytes bytes that are the same in all processes.
  const char* (*id)(std::int32_t device, unsigned char* id);
  // Makes the GPU usable, once; later calls give the same one. The GPU's primary context is used, which other
  // libraries of the process use too. `threads_sleep`: threads of all of them that wait for the GPU sleep.
  const char* (*open)(std::int32_t device, bool threads_sleep, void** gpu);
  // Has the kernel of scatter compiled, in a thread of its own, for GPUs of the kind of this one. Without
  // this call the first scatter does it.
  const char* (*want_kernel)(std::int32_t device);
  // Makes the GPU the one that other libraries called by this thread use.
  const char* (*use_here)(void* gpu);
  const char* (*facts)(void* gpu, MckptGpuFacts* facts);
  // Sets `data` to null if there is not so much memory.
  const char* (*allocate)(void* gpu, std::int64_t bytes, void** data);
  const char* (*release)(void* gpu, void* data);
  // Pins memory of the host, so that it is copied at the full speed of the link. Sets `pinned` to false if
  // the system does not grant it.
  const char* (*register_host)(void* gpu, void* data, std::int64_t bytes, bool* pinned);
  const char* (*unregister_host)(void* gpu, void* data);
  // Makes a lane, which is a stream, and returns CUDA's own handle of it as well.
  const char* (*make_lane)(void* gpu, void** lane, void** stream);
  const char* (*release_lane)(void* lane);  // waits for the lane's work
  // The work of a lane: each of these returns when the work is given, not when it is done. scatter reads the
  // batch before it returns. follow makes `lane` wait for the present work of `other`.
  const char* (*copy)(void* lane, const void* from, void* to, std::int64_t bytes);
  const char* (*zero)(void* lane, void* at, std::int64_t bytes);
  const char* (*scatter)(void* lane, const mckpt::impl::ScatterBatch* batch);
  const char* (*follow)(void* lane, void* other);
  // Returns when all work of the lane is done. The thread sleeps meanwhile.
  const char* (*wait)(void* lane);
  // Whether all work of the lane is done. Fails if the work failed.
  const char* (*done)(void* lane, bool* done);
  // Loads libtorch's CUDA library. Without it tensors on a GPU can be made, but no operation on them works.
  const char* (*load_torch)();
};
}
