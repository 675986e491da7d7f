#include "live/memory.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace mckpt {
namespace {

constexpr i64 kPage = 4096;

i64 free_bytes() { return static_cast<i64>(sysconf(_SC_AVPHYS_PAGES)) * sysconf(_SC_PAGESIZE); }

}  // namespace

u8* HostMemory::allocate(i64 bytes) {
  i64 room = round_up(bytes, kPage, "an allocation");
  auto* data = static_cast<u8*>(std::aligned_alloc(kPage, static_cast<std::size_t>(room)));
  std::lock_guard lock(mutex_);
  if (!data)
    throw Error(Code::kOutOfMemory, "there is not enough memory for the weights of a module")
        .expected(cat(bytes, " bytes"))
        .found(cat(free_bytes(), " bytes free, ", held_, " held by live tensors"));
  blocks_.emplace(data, bytes);
  held_ += bytes;
  peak_ = std::max(peak_, held_);
  return data;
}

void HostMemory::release(u8* data) {
  std::lock_guard lock(mutex_);
  auto block = blocks_.find(data);
  held_ -= block->second;
  blocks_.erase(block);
  std::free(data);
}

i64 HostMemory::held_bytes() const {
  std::lock_guard lock(mutex_);
  return held_;
}

i64 HostMemory::peak_bytes() const {
  std::lock_guard lock(mutex_);
  return peak_;
}

void HostMemory::reset_peak() {
  std::lock_guard lock(mutex_);
  peak_ = held_;
}

}  // namespace mckpt
