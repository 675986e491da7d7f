// All items are equal if each is equal to the one before it, so a stretch is compared with itself, moved by
// one item.
#include "io/values/varying_items.h"

#include <algorithm>
#include <cstring>

#include "io/file/file.h"

namespace mckpt::impl {

bool VaryingItems::add(std::span<const u8> items) {
  if (items.empty()) return false;
  const std::size_t item = static_cast<std::size_t>(item_bytes_);
  if (first_.empty()) first_.assign(items.begin(), items.begin() + item_bytes_);
  return std::memcmp(items.data(), first_.data(), item) != 0 ||
         std::memcmp(items.data(), items.data() + item, items.size() - item) != 0;
}

bool items_vary(const ByteSource& file, i64 offset, i64 bytes, i64 item_bytes) {
  constexpr i64 kBlockItems = 1 << 14;
  VaryingItems varying(item_bytes);
  std::vector<u8> block(static_cast<std::size_t>(std::min(bytes, kBlockItems * item_bytes)));
  for (i64 begin = 0; begin < bytes; begin += std::ssize(block)) {
    const std::span<u8> part(block.data(),
                             static_cast<std::size_t>(std::min<i64>(std::ssize(block), bytes - begin)));
    file.read(offset + begin, part);
    if (varying.add(part)) return true;
  }
  return false;
}

}  // namespace mckpt::impl
