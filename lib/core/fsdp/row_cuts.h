// Where the shards of a flat buffer cut a parameter inside one of its rows. Megatron-FSDP v1 fails when it
// builds the DTensor of such a parameter, and no checkpoint can hold such a shard.
//
//   [2, 6] and [4, 5] over 2 ranks, v1: the second parameter begins at 12, shard 1 begins at 30
//   that is item 18 of the parameter, inside its row 3 (items 15 to 19)
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

class Shape;
struct FlatBuffer;
struct Packing;

// A boundary of two shards inside a row.
struct RowCut {
  i64 parameter = 0;
  i64 item = 0;   // of the parameter: the first one of the later shard
  i64 shard = 0;  // the later one
  i64 row = 0, row_items = 1;
};

// The first cut of each parameter that has one.
std::vector<RowCut> row_cuts(const FlatBuffer& buffer);

// The number of ranks nearest to the packing's number with which no row is cut; nothing where none is near,
// or the search would take long.
std::optional<i64> ranks_without_cuts(std::span<const Shape> shapes, const Packing& packing);

}  // namespace mckpt::impl
