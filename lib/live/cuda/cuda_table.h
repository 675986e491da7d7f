// The functions of the cuda module behind `MckptModule::functions`: one GPU of this process, and what is done
// there. Only the pointers of these functions' own making are GPU memory and lanes.
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

struct MckptCudaTable {
  std::uint32_t struct_size;
  // Those that this process may use. Fails, with the reason, where there is no driver.
  const char* (*devices)(std::int32_t* count);
  // What a GPU is known by everywhere, kMckptGpuIdBytes.
  const char* (*id)(std::int32_t device, unsigned char* id);
  // Everything below is done on this one, whichever thread calls. Called once, before.
  const char* (*choose)(std::int32_t device);
  // Other libraries, called by this thread, use it from here on as well.
  const char* (*use_here)();
  const char* (*facts)(MckptGpuFacts* facts);
  // Null where there is not so much memory.
  const char* (*allocate)(std::int64_t bytes, void** data);
  const char* (*release)(void* data);
  // Pins memory of the host, so that it moves at the full speed of the link; not where the system does not
  // grant it.
  const char* (*register_host)(void* data, std::int64_t bytes, bool* pinned);
  const char* (*unregister_host)(void* data);
  // A stream, and CUDA's own handle of it.
  const char* (*make_lane)(void** lane, void** stream);
  const char* (*release_lane)(void* lane);  // waits
  const char* (*copy)(void* lane, const void* from, void* to, std::int64_t bytes);
  const char* (*zero)(void* lane, void* at, std::int64_t bytes);
  const char* (*scatter)(void* lane, const mckpt::impl::ScatterBatch* batch);
  const char* (*follow)(void* lane, void* other);
  // Returns when all is done. The thread sleeps meanwhile.
  const char* (*wait)(void* lane);
  const char* (*done)(void* lane, bool* done);
  // libtorch's CUDA side, without which there are tensors on a GPU but nothing can be done with them.
  const char* (*load_torch)();
};
}
