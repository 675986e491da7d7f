// How a DTensor lies over the ranks: read from its spec, and turned into the box that a rank's piece is.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

class PickleValue;
struct PickleNode;

struct TorchMesh {
  std::vector<i64> sizes;
  std::vector<i64> ranks;  // row-major
  i64 rank = -1;           // that wrote the file, where it says so
};

// The meshes of a file. Thousands of tensors share one.
class TorchMeshes {
 public:
  // Throws kBadPickle.
  std::shared_ptr<const TorchMesh> read(PickleValue device_mesh);

 private:
  std::map<const PickleNode*, std::shared_ptr<const TorchMesh>> by_node_;
};

// What one dimension of the mesh does to the tensor.
struct TorchPlacement {
  enum class Kind : u8 { kReplicate, kShard, kStridedShard, kPartial };
  Kind kind = Kind::kReplicate;
  int dim = 0;  // of the tensor, where it is cut
  bool operator==(const TorchPlacement&) const = default;
  bool cuts(int d) const { return dim == d && (kind == Kind::kShard || kind == Kind::kStridedShard); }
};

struct TorchSharding {
  std::vector<i64> global;                 // sizes of the whole tensor
  std::vector<TorchPlacement> placements;  // one a mesh dimension
  std::vector<int> shard_order;            // mesh dimensions, outermost cut first; empty: as they come
  std::shared_ptr<const TorchMesh> mesh;
};

// From a DTensorSpec, of torch 2.0 to 2.11. Leaves `global` empty. Throws kBadPickle.
TorchSharding read_torch_sharding(PickleValue spec, TorchMeshes& meshes);

// "Shard(0) over a mesh of [4]"
std::string to_string(const TorchSharding& sharding);

// The place of a rank in the mesh, one coordinate a mesh dimension; nothing when it is not in it.
std::optional<std::vector<i64>> mesh_place(const TorchMesh& mesh, i64 rank);

// What each rank of a set of files holds of one tensor. Ranks may be missing.
struct TorchPiece {
  i64 rank = -1;
  std::span<const i64> sizes;
  std::vector<i64> offsets{};  // result
  bool replica = false;        // result: an earlier piece is the same box
};

// Fills offsets and replica by adding up the sizes of the pieces in the order of the cuts: uneven shards do
// not say where they lie. pre: all pieces have the sharding's number of dimensions. Returns what is wrong, or
// "".
std::string place_pieces(const TorchSharding& sharding, std::span<TorchPiece> pieces);

// The offsets of one rank's piece when the tensor was cut evenly, as torch.chunk does; nothing when its sizes
// are not those of an even cut, or its rank is not in the mesh.
std::optional<std::vector<i64>> even_offsets(const TorchSharding& sharding, i64 rank,
                                             std::span<const i64> sizes);

}  // namespace mckpt::impl
