// The host's memory. Large allocations are checked against the free memory of the system first, because Linux
// grants more than it has and ends the process later.
#include "live/device/memory.h"

#include <algorithm>
#include <cstdlib>

#include "core/base/error.h"
#include "core/base/text.h"
#include "runtime/system/memory_room.h"

namespace mckpt::impl {
namespace {

constexpr i64 kPage = 4096;
constexpr const char* kWhat = "live tensors and buffers";

}  // namespace

// The free memory is checked without the lock, because that reads files of the system.
u8* HostMemory::allocate(i64 bytes) {
  i64 room = round_up(bytes, kPage, "an allocation");
  check_room(room);
  auto* data = static_cast<u8*>(std::aligned_alloc(kPage, static_cast<std::size_t>(room)));
  std::lock_guard lock(mutex_);
  if (!data) throw out_of_memory(room, kWhat).note(cat("live tensors use ", held_, " bytes"));
  blocks_.emplace(data, bytes);
  held_ += bytes;
  peak_ = std::max(peak_, held_);
  return data;
}

void HostMemory::check_room(i64 bytes) const { check_memory_room(bytes, kWhat); }

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

}  // namespace mckpt::impl
