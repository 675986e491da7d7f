#include "live/device/pooled_memory.h"

namespace mckpt {
namespace {

PoolMemory source_of(Memory& from) {
  return {[&from](i64 bytes) { return reinterpret_cast<std::byte*>(from.allocate(bytes)); },
          [&from](std::byte* memory, i64) { from.release(reinterpret_cast<u8*>(memory)); }};
}

constexpr i64 kAlignment = 256;  // that of every Memory

}  // namespace

PooledMemory::PooledMemory(Memory& from) : from_(from), pool_(source_of(from), kAlignment) {}

u8* PooledMemory::allocate(i64 bytes) { return reinterpret_cast<u8*>(pool_.allocate(bytes)); }

void PooledMemory::release(u8* data) { pool_.free(reinterpret_cast<std::byte*>(data)); }

}  // namespace mckpt
