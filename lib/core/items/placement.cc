// The text of a placement, and the two ways to cut n items into parts:
//
//   chunk_part(10, 4)     [0, 3) [3, 6) [6, 9) [9, 10)      torch.chunk: the first parts are the largest
//   chunk_part(4, 3)      [0, 2) [2, 4) [4, 4)              the last one is empty
//   equal_part(8, 4)      [0, 2) [2, 4) [4, 6) [6, 8)       tensor parallelism: 10 over 4 is refused
#include "core/items/placement.h"

#include "core/base/error.h"
#include "core/items/item_run.h"

#include <algorithm>

namespace mckpt::impl {

std::string to_string(const Placement& p) {
  switch (p.kind) {
    case PlacementKind::kReplicate:
      return "Replicate()";
    case PlacementKind::kShard:
      return cat("Shard(", p.dim, ")");
    case PlacementKind::kStridedShard:
      return cat("_StridedShard(", p.dim, ", sf=", p.split_factor, ")");
    case PlacementKind::kFlatShard:
      return cat("FlatShard(", p.dim, ")");
    case PlacementKind::kPartial:
      return "Partial(sum)";
  }
  return "?";
}

ItemRange chunk_part(i64 n, i64 parts, i64 index) {
  i64 size = ceil_div(n, parts);
  i64 begin = std::min(n, checked_mul(size, index, "a shard's offset"));
  return {begin, begin + std::min(size, n - begin)};
}

ItemRange equal_part(i64 n, i64 parts, i64 index, std::string_view what) {
  if (n % parts != 0)
    throw Error(Code::kBadGrid, cat(what, " does not divide by the parallel size"))
        .expected(cat("a multiple of ", parts))
        .found(n);
  return {n / parts * index, n / parts * (index + 1)};
}

}  // namespace mckpt::impl
