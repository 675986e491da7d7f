// ShardedTensor, the distributed tensor of FSDP1 without a device mesh. torch itself refuses to load one
// outside of a job of as many ranks, so it is read as data: each file has the shards of its rank, with their
// boxes, and a list of the boxes of all ranks.
//
//   ShardedTensor, size [71, 32], rank 1 of 3
//     local shards    tensor [24, 32], ShardMetadata(offsets [24, 0], sizes [24, 32])     one, none or several
//     metadata        size [71, 32], shards [0, 0]+[24, 32]  [24, 0]+[24, 32]  [48, 0]+[23, 32]
#pragma once

#include <vector>

#include "io/torch/table/tensor.h"

namespace mckpt::impl {

struct TorchCall;

// Whether the call makes a ShardedTensor.
bool is_sharded_tensor(const TorchCall& call);

// The shards of this rank, in the order of the file; for none, one tensor of no items (TorchTensor::nothing).
// Throws kBadPickle, kBadShape, kBadShards, and what read_torch_tensor() throws.
std::vector<TorchTensor> read_sharded_tensor(const TorchCall& call, TorchMeshes& meshes);

}  // namespace mckpt::impl
