// The pieces of parameters that ranks of FSDP1 save with LOCAL_STATE_DICT. The parameters of a unit are one
// vector, of which each rank has a shard; under the name of a parameter a rank has the part of it that is in
// its shard, as a view of the shard's storage. So a piece has a place in the unit, though no file states it:
//
//   unit "_flat_param" [24]   |wwwwwwwwwwwwwww.bbbbb...|       .: padding, of no parameter
//   rank 0, shard [0, 12)     |wwwwwwwwwwww|                   w: 12 items at 0      b: nothing
//   rank 1, shard [12, 24)                |www.bbbbb...|       w: 3 items at 12      b: 5 items at 16
//                                                              joined: w [15] = 12 + 3 items, b [5]
//
// The shapes of the parameters are in no file (convert/own/flat_shapes.h has them from the model). Names
// that share a weight have the same places. A buffer is in no shard: each rank has the whole.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/int.h"
#include "core/items/item_run.h"

namespace mckpt::impl {

class TorchTable;
struct TorchSharding;

// Whether the tensor is the flat parameter of a whole FSDP1 unit. A file that has one is of LOCAL_STATE_DICT:
// its other tensors are flat pieces.
bool is_flat_parameter(std::string_view name, const TorchSharding* sharding);

// The units of a group of ranks. Shards are added first, then pieces are placed.
class FlatUnits {
 public:
  // Adds a row that is_flat_parameter(): the shard that the file's rank has of a unit. Returns what is wrong
  // with it, or "".
  std::string add(i32 file, const TorchTable& table, i64 row);
  i64 size() const { return std::ssize(units_); }
  const std::string& name(i64 unit) const { return units_[unit].name; }

  struct Place {
    i64 unit = -1;
    ItemRange items{};  // of the unit
  };
  // Where the items of a row are, and notes that they are some tensor's; nothing for a row that is not in a
  // shard. pre: all shards were added.
  std::optional<Place> place(i32 file, const TorchTable& table, i64 row);

  // Throws kUnsupportedTorchFile for a unit of whose shards no tensor has an item: its parameters have no
  // names.
  void refuse_nameless() const;
  // Stretches that are too long for padding, and of no tensor: "items 15 to 39 of _flat_param". pre: all
  // pieces of all ranks were placed.
  std::vector<std::string> gaps() const;

 private:
  struct Unit {
    std::string name;
    i64 items = 0, ranks = 0;
    i64 most = 0;                   // items of a shard
    std::vector<ItemRange> used{};  // by tensors
  };
  struct Shard {
    i64 unit, row;
    ItemRange items;  // of the unit
  };
  std::vector<Unit> units_;
  std::map<std::string, i64, std::less<>> by_name_;
  std::map<std::pair<i32, i64>, std::vector<Shard>> shards_;  // by file and the offset of the storage in it
};

}  // namespace mckpt::impl
