#include "convert/item_differences.h"

#include <algorithm>
#include <set>
#include <tuple>

namespace mckpt {

Extent extent_of(const ChunkList& chunks, i64 chunk, std::string name) {
  ChunkList::Place place = chunks.place(chunk);
  i64 item = dtype_bytes(place.dtype, 1), items = Shape(chunks.box(chunk).sizes).items();
  return {place.file, place.data_offset, place.data_offset + items * item, std::move(name), item};
}

std::vector<Extent> extents_of(const ChunkList& chunks, const std::function<std::string(i32)>& name) {
  std::vector<Extent> out;
  for (i64 c = 0; c < chunks.size(); c++) out.push_back(extent_of(chunks, c, name(chunks.key(c))));
  return out;
}

std::vector<ItemDifference> item_differences(std::span<const CompareSink::Difference> differences,
                                             std::vector<Extent> extents) {
  auto begins = [](const Extent& e) { return std::tuple(e.file, e.begin); };
  std::ranges::sort(extents, {}, begins);
  std::vector<ItemDifference> out;
  std::set<std::string_view> named;
  for (const CompareSink::Difference& d : differences) {
    auto at = std::ranges::upper_bound(extents, std::tuple(d.file, d.offset), {}, begins);
    if (at == extents.begin()) continue;
    const Extent& e = *--at;
    if (e.file != d.file || d.offset >= e.end || !named.insert(e.name).second) continue;
    out.push_back({e.name, d.file, d.offset, (d.offset - e.begin) / e.item_bytes});
  }
  return out;
}

}  // namespace mckpt
