// Finds the cuts of a packing, and by trial a number of ranks that has none: nearest numbers first, up to
// 64 away. The trial packs the shapes anew for every number, so it is left out for more than 1000 shapes.
#include "core/fsdp/row_cuts.h"

#include "core/base/error.h"
#include "core/fsdp/flat_buffer.h"
#include "core/items/shape.h"

namespace mckpt::impl {
namespace {

// Whether the packing for this many ranks cuts no row.
bool cuts_between_rows(std::span<const Shape> shapes, const Packing& packing) {
  try {
    return row_aligned(pack(shapes, packing));
  } catch (const Error&) {
    return false;  // too large for this many ranks
  }
}

}  // namespace

std::vector<RowCut> row_cuts(const FlatBuffer& buffer) {
  std::vector<RowCut> cuts;
  for (i64 p = 0; p < std::ssize(buffer.parameters); p++)
    if (std::optional<i64> item = unaligned_cut(buffer, p)) {
      const PackedParameter& packed = buffer.parameters[p];
      i64 shard = (packed.offset + *item) / buffer.shard_items;
      cuts.push_back({p, *item, shard, *item / packed.row_items, packed.row_items});
    }
  return cuts;
}

std::optional<i64> ranks_without_cuts(std::span<const Shape> shapes, const Packing& packing) {
  constexpr i64 kFarthest = 64;
  constexpr std::size_t kMostShapes = 1000;
  if (packing.hsdp > 1 || shapes.size() > kMostShapes) return std::nullopt;
  Packing other = packing;
  for (i64 by = 1; by <= kFarthest; by++)
    for (i64 ranks : {packing.ranks + by, packing.ranks - by}) {
      other.ranks = ranks;
      if (ranks > 1 && cuts_between_rows(shapes, other)) return ranks;
    }
  return std::nullopt;
}

}  // namespace mckpt::impl
