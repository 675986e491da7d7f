// The boxes that a rank's local tensor has of a larger tensor, as torch_checkpointing writes them: three
// lists, in attributes of the local tensor or in metadata.pkl.
//
//   of a tensor [8, 4] the local one [4, 4]   global_offsets [[0, 0], [6, 0]]   rows 0 and 1, 6 and 7
//                                             local_offsets  [[0, 0], [2, 0]]   rows 0 and 1, 2 and 3
//                                             local_sizes    [[2, 4], [2, 4]]
#pragma once

#include <string_view>
#include <vector>

#include "io/torch/table/tensor.h"

namespace mckpt::impl {

struct TorchBox {
  std::vector<i64> global, local, sizes;  // offsets in the whole, offsets in the local tensor, sizes
};

// The integers of a tuple or list; at most as many as a shape may have dimensions. `what` is for messages.
// Throws kBadPickle, kBadShape.
std::vector<i64> torch_integers(PickleValue v, std::string_view what);

// Reads lists of as many boxes. Throws kBadPickle, and kBadShape.
std::vector<TorchBox> read_torch_boxes(PickleValue global_offsets, PickleValue local_offsets,
                                       PickleValue local_sizes);

// The layout of a tensor that ranks have by such boxes; several may have the same ones.
TorchSharding sharding_by_boxes(std::vector<i64> global_shape);

// The part of the local tensor that is the box. Throws kBadShape for a box that is not in its local or its
// global tensor.
TorchTensor tensor_of_box(const TorchTensor& local, const TorchSharding& sharding, const TorchBox& box);

}  // namespace mckpt::impl
