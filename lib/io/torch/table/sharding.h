// How a tensor is distributed over ranks: a DTensor by a spec, which is turned into the box that each rank's
// piece is; a ShardedTensor by a list of all boxes (io/torch/table/sharded_tensor.h).
//
// A DTensor is the piece of a tensor that one rank has. Its ranks form a mesh of one or more dimensions,
// and for each of them a placement says what it does to the tensor: cut it along a dimension, or copy it.
//
//   mesh [2, 2], placements [Replicate, Shard(0)], tensor [10, 4]:
//              rank 0: rows 0-4    rank 1: rows 5-9
//              rank 2: rows 0-4    rank 3: rows 5-9        copies of rank 0's and rank 1's
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/int.h"
#include "io/torch/table/mesh.h"

namespace mckpt::impl {

class PickleValue;
class ShardRows;
struct PickleNode;

// All boxes of a ShardedTensor, as the file of each of its ranks lists them. A box is 2 * dimensions numbers:
// its offsets, then its sizes.
struct TorchBoxes {
  std::vector<const std::vector<i64>*> all;  // sorted by their numbers, which are in:
  std::shared_ptr<const ShardRows> rows;
};

// The meshes and the lists of boxes of one file, each read once: thousands of tensors may share one.
class TorchMeshes {
 public:
  // `rows`: the boxes of ShardedTensors, which the pickle of the file was read with; null: they are not read.
  explicit TorchMeshes(std::shared_ptr<const ShardRows> rows = nullptr) : rows_(std::move(rows)) {}

  // Throws kBadPickle.
  std::shared_ptr<const TorchMesh> read(PickleValue device_mesh);
  std::shared_ptr<const TorchBoxes> read_boxes(PickleValue shards_metadata);
  // Reads a ShardMetadata. Throws kBadPickle for any other value.
  const std::vector<i64>& read_box(PickleValue metadata) const;

 private:
  std::shared_ptr<const ShardRows> rows_;
  std::map<const PickleNode*, std::shared_ptr<const TorchMesh>> by_node_;
  std::map<const PickleNode*, std::shared_ptr<const TorchBoxes>> boxes_by_node_;
};

// The effect of one dimension of the mesh on the tensor. kStridedShard cuts the tensor dimension into blocks,
// and gives each rank its part of every block: so a cut is written that comes after one of the same tensor
// dimension to its right (FSDP2 over tensor parallelism), and one of several matrices in one tensor. kPartial
// means that the values are still to be summed.
struct TorchPlacement {
  enum class Kind : u8 { kReplicate, kShard, kStridedShard, kPartial };
  Kind kind = Kind::kReplicate;
  int dim = 0;     // of the tensor, where it is cut
  i64 blocks = 1;  // of kStridedShard: torch's split factor
  bool operator==(const TorchPlacement&) const = default;
  bool cuts(int d) const { return dim == d && (kind == Kind::kShard || kind == Kind::kStridedShard); }
};

// The placement that cuts along a dimension. `blocks`: of a strided shard, torch's split factor; nothing: of
// a plain one. Throws kBadPickle.
TorchPlacement cut_along(i64 dim, std::optional<i64> blocks);

// The layout of one DTensor or ShardedTensor, as its file states it.
struct TorchSharding {
  std::vector<i64> global;                 // sizes of the whole tensor
  std::vector<TorchPlacement> placements;  // one a mesh dimension
  std::vector<int> shard_order;            // mesh dimensions, outermost cut first; empty: as they come
  // The order is recorded, and strided shards are what they are. If not, their blocks may stand for an order.
  bool order_is_recorded = false;
  std::shared_ptr<const TorchMesh> mesh;  // of a DTensor; null for a ShardedTensor, which has the rest:
  std::shared_ptr<const TorchBoxes> boxes{};
  std::vector<i64> offsets{};        // of this piece
  i64 rank = -1;                     // that wrote the file
  i64 group_ranks = -1, ranks = -1;  // that hold a part of the tensor, and of the whole job

  // The rank that wrote the file, and the number of ranks that it knows of; -1: it does not say.
  i64 writer() const { return mesh ? mesh->rank : rank; }
  i64 least_ranks() const;
};

// From a DTensorSpec, of torch 2.0 to 2.15. `global` stays empty: the spec does not have it. Throws
// kBadPickle.
TorchSharding read_torch_sharding(PickleValue spec, TorchMeshes& meshes);

// Throws kBadPickle unless there is a placement for each dimension of the mesh, kBadShape for a cut along a
// dimension that the tensor does not have. pre: the mesh and `global` are set.
void check_placements(const TorchSharding& sharding);

// "Shard(0) over a mesh of [4]"
std::string to_string(const TorchSharding& sharding);

}  // namespace mckpt::impl
