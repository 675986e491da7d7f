// The flat buffers of Megatron's distributed optimizer in torch_dist (sharding type dp_reshardable). A bucket
// is a tensor of one dimension; its parameters begin at multiples of 64 items, and between them is padding,
// whose items are whatever was in memory: NaN is usual. The chunks of a bucket end where a parameter, the
// padding or the share of a rank ends, so they show which is which:
//
//   optimizer.distributed.dp_group_idx_0.gbuf_idx_0.dtype_(..).bucket_idx_0.param
//   [0, 1344) parameter   [1344, 1368) parameter   [1368, 1408) padding   [1408, 2272) parameter ...
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

class Store;

// Whether the tensor is a bucket, by its name.
bool is_bucket(std::string_view name);

// Whether the object has the states of a model-parallel rank (sharding type dp_zero_gather_scatter): buffers
// of all its parameters, one after the other, pickled as one object:
//   optimizer.distributed.dp_group_idx_0.param_state/shard_0_1
bool is_gathered_states(std::string_view object);

// The stretches of a bucket that are padding, ascending: none for any other tensor. Where the share of a rank
// ends within a stretch of less than 64 items up to a multiple of 64, it counts as padding: it may be.
std::vector<std::pair<i64, i64>> bucket_padding(const Store& store, i64 tensor);

// The stretches of a bucket that show the same padding when each of them is one chunk, whichever ranks have
// them: its chunks, joined where the share of a rank ended within a parameter or within padding.
std::vector<std::pair<i64, i64>> bucket_stretches(const Store& store, i64 bucket);

}  // namespace mckpt::impl
