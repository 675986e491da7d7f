// Where in a tensor the pieces are that ranks have of a DTensor.
//
// Placements are cuts, one after the other: each divides what the cuts before it left into parts of one size,
// the last ones smaller or empty. A strided cut divides every block of what is left, so that a rank may have
// several stretches of a dimension:
//
//   [12], Shard(0) over 2 ranks                   rank 0: 0-5          rank 1: 6-11
//   [12], StridedShard(0, in 2 blocks) over 2     rank 0: 0-2 6-8      rank 1: 3-5 9-11
//
// FSDP2 over tensor parallelism cuts the mesh dimension to the right first and writes this as a strided
// shard, whose blocks are the parts of that cut. Both readings agree where all parts are even. Where they do
// not, the sizes of the pieces say which of them it was.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/items/item_run.h"
#include "io/torch/store.h"
#include "io/torch/table/sharding.h"

namespace mckpt::impl {

// The stretches of a tensor that one piece is, dimension by dimension, in the order of the piece: one or more
// of each, an empty one for a piece without items.
using TorchStretches = std::vector<std::vector<ItemRange>>;

// The part of a tensor that one rank of a set of files has; place_pieces() fills in the result. Ranks may be
// missing.
struct TorchPiece {
  i64 rank = -1;
  std::span<const i64> sizes;
  const TorchSharding* sharding = nullptr;  // as the rank's own file states it
  std::vector<i64> offsets{};               // result: of a piece that is one box
  TorchStretches stretches{};               // result: of one that is not; empty otherwise
  bool replica = false;                     // result: an earlier piece is the same
};

// The pieces of a store that a placed piece is, which is that row of that file: one for each of its boxes.
std::vector<TorchStore::Piece> store_pieces(const TorchPiece& piece, i32 file, i64 row);

// Numbers that are equal for pieces in the same place alone.
std::vector<i64> place_of(const TorchPiece& piece);
// Marks all pieces but the first in each place as replicas.
void mark_replicas(std::span<TorchPiece> pieces);

// Places the pieces by the rule of their placements, if their sizes fit the rule. Plain shards may
// be of other sizes: they are placed by adding up the sizes in the order of the cuts, because an uneven shard
// does not say where it is. If ranks are missing, sizes do not add up, and only the rule can place pieces. A
// grid of ranks may have the tensor once in each of its rows: each row is a mesh of its own. pre: at least
// one piece; of one DTensor, with its number of dimensions, placed alike. Returns what is wrong, or "".
std::string place_pieces(std::span<TorchPiece> pieces);

// The stretches of one rank's piece by the rule; nothing if its sizes do not fit the rule, if they fit two
// readings that differ, or if the rank is not in the mesh.
std::optional<TorchStretches> even_stretches(const TorchSharding& sharding, i64 rank,
                                             std::span<const i64> sizes);

// Writes the stretches into a piece: as offsets, if they are one box. pre: one or more for each dimension.
void place_at(TorchPiece& piece, TorchStretches stretches);

}  // namespace mckpt::impl
