// How Megatron-FSDP packs the parameters of one bucket into one flat buffer and cuts it into equal shards.
//
//   shapes (10,4) and (10), 4 shards, chunk 4         bucket 64 items
//   |aaaaaaaaaaaaaaaa|aaaaaaaaaaaaaaaa|aaaaaaaabbbbbbbb|bb..............|
//    shard 0          shard 1          shard 2          shard 3          16 items each
//
// Offsets count items of the bucket; an ItemRange counts items of one parameter, which is the TP-local
// tensor. The rules, with worked examples: docs/formats/fsdp_buffers.md.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/base/int.h"
#include "core/fsdp/grid.h"
#include "core/fsdp/strategy.h"

namespace mckpt::impl {

class Shape;
struct ItemRange;

// How a bucket is packed: by which version, for how many ranks.
struct Packing {
  Engine engine = Engine::kV1;
  Strategy strategy = Strategy::kOptimGradsParams;
  i64 ranks = 1;  // the ranks that share the bucket
  i64 hsdp = 1;   // the instances that the ranks are divided into
  HsdpOuter outer = HsdpOuter::kReplicate;
  // Rows that v2 never parts: every parameter begins, and every shard ends, between blocks of them.
  i64 block_rows = 1;
};

// The place of one parameter in the buffer.
struct PackedParameter {
  i64 items = 0;
  i64 row_items = 1;
  i64 offset = 0;  // of the first item in the bucket

  i64 end() const { return offset + items; }
};

// One packed bucket. Parameters do not overlap; what no parameter covers is a hole or padding, and is never
// saved.
struct FlatBuffer {
  std::vector<PackedParameter> parameters;  // in order of registration
  std::vector<i64> order;                   // parameters in the order in which they are placed
  i64 chunk_items = 1;                      // large parameters are aligned to this: the chunk-size factor
  i64 bucket_items = 0;                     // with holes and padding
  i64 shards = 1;
  i64 shard_items = 0;  // rank r holds [s*shard_items, (s+1)*shard_items), s = place_of(r, ...).shard
};

// Throws kBadLayout for a strategy under which instances cannot have parts of a buffer.
void refuse_outer_shard(const Packing& packing);

// Throws kBadLayout for parameters and combinations that cannot be packed, kBadGrid for rank counts that do
// not divide, kSizeOverflow.
FlatBuffer pack(std::span<const Shape> shapes, const Packing& packing);

// The items of parameter p on shard s; {0, 0} if there are none. Shards tile a parameter in ascending order,
// except under no_shard, where they are virtual (v1 does not pad, and every rank holds everything).
ItemRange item_range(const FlatBuffer& buffer, i64 p, i64 s);

// Whole rows of a parameter.
struct Rows {
  i64 begin = 0;
  i64 count = 0;

  friend bool operator==(const Rows&, const Rows&) = default;
};

// The rows of parameter p on shard s: one chunk as it is saved. Rows are counted from the first row of the
// parameter, or of a piece of it (`piece`: whole rows of p). `begin` is the number of rows on the shards
// before, so that a chunk without rows has a place too. Throws kRowUnaligned.
Rows rows_on_shard(const FlatBuffer& buffer, i64 p, i64 s);
Rows rows_on_shard(const FlatBuffer& buffer, i64 p, i64 s, ItemRange piece);

// The first item of p at which a shard begins inside a row.
std::optional<i64> unaligned_cut(const FlatBuffer& buffer, i64 p);
bool row_aligned(const FlatBuffer& buffer);

}  // namespace mckpt::impl
