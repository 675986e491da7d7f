// How much memory a job may use for chunks of its source that are not stored row by row (ReadableChunks).
#pragma once

#include <algorithm>

#include "core/base/int.h"

namespace mckpt::impl {

// Readers that are kept between reads: one for each of the threads, with `bytes` for each of them. A job that
// was not prepared has one of them.
struct ReadMemory {
  int threads = 1;
  i64 bytes = i64{8} << 20;
};

// For a run that may use `memory_bytes`: half of them are the copy engine's, and half of the rest is kept
// free for what readers unpack.
inline ReadMemory read_memory(int threads, i64 memory_bytes) {
  return {threads, std::clamp<i64>(memory_bytes / threads / 4, 1 << 20, 32 << 20)};
}

}  // namespace mckpt::impl
