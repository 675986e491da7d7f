// Extents are sorted by file and beginning. Their ends are not sorted, so reach_ keeps the largest end so
// far, which grows within a file: a binary search in it skips all extents that end before an offset.
#include "convert/compare/differences/chunk_extents.h"
#include "convert/keys/stored_chunks.h"
#include "core/base/error.h"
#include "core/items/shape.h"

#include <algorithm>
#include <tuple>

namespace mckpt::impl {

ChunkExtents::ChunkExtents(const ChunkList& chunks) {
  extents_.reserve(static_cast<std::size_t>(chunks.size()));
  for (i64 c = 0; c < chunks.size(); c++) {
    try {
      ChunkList::Place place = chunks.place(c);
      i64 bytes = dtype_bytes(place.dtype, Shape(chunks.box(c).sizes).items());
      extents_.push_back({place.file, place.data_offset, place.data_offset + bytes, c, place.dtype});
    } catch (const Error&) {
      // The comparison itself reads the chunk too, and reports the error.
    }
  }
  std::ranges::sort(extents_, {},
                    [](const Extent& e) { return std::tuple(e.file, e.begin, e.end, e.chunk); });
  for (std::size_t e = 0; e < extents_.size(); e++) {
    bool same_file = e > 0 && extents_[e - 1].file == extents_[e].file;
    reach_.push_back(same_file ? std::max(reach_[e - 1], extents_[e].end) : extents_[e].end);
  }
}

// The first extent of the file that may reach behind the offset: reach_ grows within a file.
std::size_t ChunkExtents::first_behind(i32 file, i64 offset) const {
  std::size_t low = 0, high = extents_.size();
  while (low < high) {
    std::size_t middle = (low + high) / 2;
    bool is_before = std::tuple(extents_[middle].file, reach_[middle]) <= std::tuple(file, offset);
    (is_before ? low : high) = is_before ? middle + 1 : middle;
  }
  return low;
}

}  // namespace mckpt::impl
