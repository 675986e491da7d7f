// Placement: how a tensor is distributed along one dimension of a device mesh, in torch's words; and the two
// ways to cut a dimension into parts.
//
//   mesh (dp 2, tp 2), placements (Shard(0), Shard(1)) of a [4, 6] tensor: each rank holds a [2, 3] box
#pragma once

#include <string>
#include <string_view>

#include "core/base/int.h"

namespace mckpt::impl {

struct ItemRange;

// How the ranks of the mesh dimension hold a tensor.
enum class PlacementKind {
  kReplicate,
  kShard,         // along a tensor dimension, in torch.chunk's parts
  kStridedShard,  // the same after `split_factor` parts were made by a mesh dimension further right
  kFlatShard,     // Megatron-FSDP: uneven numbers of rows, cut with the flat buffer; the boxes say where
  kPartial,       // a sum over the ranks
};

struct Placement {
  PlacementKind kind = PlacementKind::kReplicate;
  int dim = 0;
  i64 split_factor = 1;

  friend bool operator==(const Placement&, const Placement&) = default;
};

std::string to_string(const Placement& placement);  // "Shard(0)", "_StridedShard(0, sf=2)", "Replicate()"

// torch.chunk: parts of ceil(n / parts), the last ones shorter or empty. Empty ones begin at n.
ItemRange chunk_part(i64 n, i64 parts, i64 index);

// Tensor parallelism: equal parts. Throws kBadGrid that names `what` when n does not divide.
ItemRange equal_part(i64 n, i64 parts, i64 index, std::string_view what);

}  // namespace mckpt::impl
