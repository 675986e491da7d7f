// Who owns which items of a tensor, in the two steps in which it comes about, and the proof that each item is
// owned exactly once: what a rule has to give, without files, chunks or jobs. A rule gives every tensor- (or
// expert-) parallel cell its runs; FSDP then cuts each cell's local order into the shards of its ranks:
//
//   source slots --rule--> runs of cell 0 | runs of cell 1 | ...
//                               '--cuts--> shards [0,16) [16,32) [32,40) [40,40)
//
// The proof follows the steps: the cells' runs tile every slot (the runs of copies tile it once more), and
// the cuts of each cell tile its local order.
#pragma once

#include <string>
#include <vector>

#include "mappings/rule.h"

namespace mckpt::impl {

struct Shard {
  i32 cell = 0;
  ItemRange range;  // of the cell's local order; empty for a rank that holds nothing
};

// One replica of one tensor.
struct ShardedTensor {
  std::string name;
  std::vector<i64> slot_items;              // the size of each source tensor
  std::vector<std::vector<ItemRun>> cells;  // each cell's runs in local order
  std::vector<Shard> shards;
};

// The items that one shard holds, in its local order.
std::vector<ItemRun> runs_of(const ShardedTensor& tensor, const Shard& shard);

// Throws kNotTiled that names the tensor, the item, and whether nobody or two own it; kBadRun when a run is
// not one.
void check_coverage(const ShardedTensor& tensor);

}  // namespace mckpt::impl
