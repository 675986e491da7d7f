// Ranks that hold nothing of a group of the optimizer. A rank's shard of a parameter is often empty under
// FSDP, and that is sound; an optimizer that takes the size of the shard for the parameter's (FusedAdam with
// plain tensors) goes wrong on exactly these ranks, and one that counts its steps in a group does not count
// them where the group is empty.
//
//   rank      0    1    2    3          group 1 has 9 vectors of 12 items
//   group 0   8    8    8    8   parameters with items
//   group 1   9    2    0    0          -> {2, "group 1", 9}, {3, "group 1", 9}
#pragma once

#include <string>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

class Store;
struct OptimizerContent;

// A group of which the rank has no item, although it has items of other groups.
struct EmptyShards {
  i64 rank;
  std::string group;
  i64 parameters;  // of the group, all empty there
};

// By group and rank. Nothing where states are not sharded, the groups do not list their parameters, or the
// format does not say who wrote a piece.
std::vector<EmptyShards> empty_shards(const Store& store, const OptimizerContent& content);
// "rank 2 holds no item of group 1 (9 parameters)" and so on, in a line; "" for none.
std::string empty_shards_text(const std::vector<EmptyShards>& all);

}  // namespace mckpt::impl
