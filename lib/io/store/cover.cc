// Collects the boxes of a tensor's chunks and checks them with cover_faults() (core/items/box_cover.h). A
// tensor that is one chunk, as nearly all tensors of most formats are, is checked without that.
#include "core/base/error_code.h"
#include "io/store/cover.h"

#include <algorithm>

namespace mckpt::impl {

std::vector<BoxFault> chunk_faults(const Store& store, i64 tensor, std::size_t most) {
  std::span<const i64> dims = store.dims(tensor);
  i64 chunks = store.chunk_count(tensor), boxes = 0;
  std::vector<i64> offsets, sizes;
  for (i64 i = 0; i < chunks; i++) {
    Chunk c = store.chunk(tensor, i);
    if (c.replica) continue;
    // The shortcut for a single chunk.
    if (chunks == 1 && std::ranges::equal(c.sizes, dims) &&
        std::ranges::equal(c.offsets, zero_offsets(dims.size())))
      return {};
    offsets.insert(offsets.end(), c.offsets.begin(), c.offsets.end());
    sizes.insert(sizes.end(), c.sizes.begin(), c.sizes.end());
    boxes++;
  }
  return cover_faults(dims, offsets, sizes, boxes, most);
}

Code cover_code(BoxFault::Kind kind) {
  switch (kind) {
    case BoxFault::Kind::kOutside:
      return Code::kChunkOutside;
    case BoxFault::Kind::kOverlap:
      return Code::kChunkOverlap;
    default:
      return Code::kChunkHole;
  }
}

}  // namespace mckpt::impl
