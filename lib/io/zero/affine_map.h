// How AutoTP of DeepSpeed split the parameters among the tensor-parallel ranks, by the map that it stores
// with the model (`universal_checkpoint_info`, `affine_map`):
//
//   '^q\\.weight$'   logical_shape [40, 24]
//       rank 0   shard_shape [20, 24]   piece [20, 24] at item   0 of the whole, at item 0 of the shard
//       rank 1   shard_shape [20, 24]   piece [20, 24] at item 480 of the whole, at item 0 of the shard
//
// A piece has a shape, an offset and strides on both sides. Pieces that are boxes on both sides are read:
// DeepSpeed makes no others.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/int.h"
#include "core/items/shape.h"

namespace mckpt::impl {

class PickleValue;

// A box of a parameter that one rank has: the same items in the whole and in the rank's shard.
struct ZeroPiece {
  i64 rank = 0;
  std::vector<i64> sizes{}, in_whole{}, in_shard{};  // offsets
  bool replica = false;                              // a rank before this one has the same box
  friend bool operator==(const ZeroPiece&, const ZeroPiece&) = default;
};

struct ZeroSplit {
  Shape whole{};
  std::vector<Shape> shards{};      // one a rank
  std::vector<ZeroPiece> pieces{};  // by rank; none without items
  friend bool operator==(const ZeroSplit&, const ZeroSplit&) = default;
};

struct ZeroAffineMap {
  i64 ranks = 0;
  std::map<std::string, ZeroSplit, std::less<>> splits{};
  std::map<std::string, std::string, std::less<>> unsupported{};  // by DeepSpeed's own account: the reason
  friend bool operator==(const ZeroAffineMap&, const ZeroAffineMap&) = default;
};

// Reads the map of a model's file. An empty map where the file has none. Throws kUnsupportedTorchFile for a
// map that cannot be used here (a version that is not known, scaled pieces, pieces that are not boxes),
// kBadShards for one that contradicts itself: ranks that lack, shards that are not tiled, a whole that has
// holes or overlaps.
ZeroAffineMap read_affine_map(PickleValue model_states, i64 ranks);

}  // namespace mckpt::impl
