// Blocks in use are found by their address, kept ones by their size; an allocation costs a search in a map.
#include "live/device/kept_memory.h"

#include <algorithm>
#include <cassert>

namespace mckpt::impl {

KeptMemory::~KeptMemory() {
  assert(in_use_.empty());
  while (!kept_.empty()) drop_smallest();
}

void KeptMemory::drop_smallest() {
  auto smallest = kept_.begin();
  from_.release(smallest->second);
  held_ -= smallest->first;
  kept_.erase(smallest);
}

u8* KeptMemory::allocate(i64 bytes) {
  if (auto fits = kept_.lower_bound(bytes); fits != kept_.end()) {
    auto [size, data] = *fits;
    kept_.erase(fits);
    in_use_[data] = size;
    return data;
  }
  if (!kept_.empty()) drop_smallest();
  u8* data = from_.allocate(bytes);
  in_use_[data] = bytes;
  held_ += bytes;
  most_held_ = std::max(most_held_, held_);
  return data;
}

void KeptMemory::release(u8* data) {
  auto found = in_use_.find(data);
  assert(found != in_use_.end());
  kept_.emplace(found->second, data);
  in_use_.erase(found);
}

}  // namespace mckpt::impl
