// The columns of a shard map, and the boxes that fall into them: what each rank or file holds of a tensor.
//
//   rank 0 [0, 4)   rank 1 [4, 8)      with a column for each rank       column 0 [0, 4)   column 1 [4, 8)
//                                      with a column for two ranks       column 0 [0, 8)
#pragma once

#include <vector>

#include "page/data/shard_map.h"

namespace mckpt::impl {

struct Chunk;

// A value.
struct ShardColumns {
  // At most so many columns: neighbours share one where there are more.
  ShardColumns(const Store& store, i64 most);

  i64 count() const;
  i64 of(const Chunk& chunk) const;  // -1: the format does not say who holds it
  std::vector<ShardColumn> titles(const Store& store) const;
  // Appends a box for each chunk of the tensor, as the box of `member`, and adds its bytes to its column.
  // Returns the bytes of the whole tensor.
  i64 add_boxes(const Store& store, i64 tensor, i64 member, std::vector<ShardBox>& boxes,
                std::vector<ShardColumn>& columns) const;

  bool by_rank = false;
  i64 holders = 0, per_column = 1;
};

bool file_is_lost(const Store& store, const Chunk& chunk);

// Makes one box of those that a column has of neighbouring members alike, and puts all in order. `join`: also
// of those that are next to each other in the tensor, which are chunks of different ranks of the column.
void merge_boxes(std::vector<ShardBox>& boxes, bool join);

}  // namespace mckpt::impl
