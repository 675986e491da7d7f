// Finds tensors in the same bytes: sorts the extents of all tensors by file and begin, and compares each
// begin with the furthest end so far. The extent of a view at strides reaches from its first item to its
// last, so two views that interleave without sharing an item count as shared as well.
#include "io/store/shared_tensors.h"

#include <algorithm>
#include <tuple>

#include "core/items/dtype.h"
#include "core/items/shape.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

// Bytes [begin, end) of a file.
struct Extent {
  i32 file;
  i64 begin, end, tensor;
};

// A tensor's bytes, from its first item to its last. `data`: its only chunk.
Extent extent_of(const Store& store, i64 tensor, const ChunkData& data) {
  i64 items = store.shape(tensor).items();
  if (!data.strides.empty()) {
    items = 1;
    for (std::size_t d = 0; d < data.strides.size(); d++)
      items += (store.dims(tensor)[d] - 1) * data.strides[d];
  }
  return {data.file, data.offset, data.offset + dtype_bytes(data.dtype, items), tensor};
}

}  // namespace

std::vector<i64> shared_tensors(const Store& store, std::span<const i64> tensors) {
  std::vector<Extent> extents;
  for (i64 t : tensors) {
    if (store.chunk_count(t) != 1 || store.shape(t).items() == 0) continue;
    ChunkData data = store.resolve(t, 0);
    if (!data.unpacked) extents.push_back(extent_of(store, t, data));
  }
  std::sort(extents.begin(), extents.end(), [](const Extent& a, const Extent& b) {
    return std::tie(a.file, a.begin, a.end, a.tensor) < std::tie(b.file, b.begin, b.end, b.tensor);
  });
  std::vector<i64> shared;
  i64 end = 0;
  for (std::size_t i = 0; i < extents.size(); i++) {
    bool same_file = i > 0 && extents[i].file == extents[i - 1].file;
    if (same_file && extents[i].begin < end) shared.push_back(extents[i].tensor);
    end = same_file ? std::max(end, extents[i].end) : extents[i].end;
  }
  return shared;
}

}  // namespace mckpt::impl
