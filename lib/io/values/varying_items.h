// Whether a tensor is more than one value again and again. Files of two ranks may have the same zeros, ones
// of a norm or padding; with the same items that vary, one of the two is a copy.
#pragma once

#include <span>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

class ByteSource;

// Looks at the items of one tensor, stretch by stretch.
class VaryingItems {
 public:
  // pre: item_bytes > 0.
  explicit VaryingItems(i64 item_bytes) : item_bytes_(item_bytes) {}
  // Whether an item of this stretch differs from the first item of all. pre: whole items.
  bool add(std::span<const u8> items);

 private:
  i64 item_bytes_;
  std::vector<u8> first_;
};

// Whether the items in a range of a file differ; reads up to the first that does. pre: whole items.
bool items_vary(const ByteSource& file, i64 offset, i64 bytes, i64 item_bytes);

}  // namespace mckpt::impl
