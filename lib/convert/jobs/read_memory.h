// How much memory a job may use for chunks of its source that are not stored row by row (ReadableChunks).
#pragma once

#include <algorithm>

#include "core/base/int.h"

namespace mckpt::impl {

// `bytes` for each of the threads.
struct ReadMemory {
  int threads = 1;
  i64 bytes = i64{8} << 20;
};

// Of a conversion that may use `memory_bytes`: half of them are the copy engine's.
inline ReadMemory read_memory(int threads, i64 memory_bytes) {
  return {threads, std::clamp<i64>(memory_bytes / threads / 4, 1 << 20, 32 << 20)};
}

}  // namespace mckpt::impl
