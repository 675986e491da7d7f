// PlainLayout: the tensors of a store as a DCP folder of data-parallel ranks: each tensor keeps its name, its
// rows are divided among the ranks as torch's fully_shard divides them, and objects are copied unchanged.
//
//   [10, 4] over 4 ranks:   rows 0-2, 3-5, 6-8, 9       of ceil(10 / 4) = 3 rows each, the last ones fewer or none
//
// A tensor that cannot be divided is stored by the last rank. A bucket of Megatron's distributed optimizer
// keeps the chunks that show its padding (io/dcp/keys/buckets.h).
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "convert/jobs/carried_record.h"
#include "convert/own/saved_states.h"
#include "core/base/int.h"
#include "io/dcp/write/layout.h"
#include "io/dcp/write/paths.h"

namespace mckpt::impl {

enum class DType : u8;
class Store;

// The layout, and what is left out of it. The store outlives the object.
class PlainLayout {
 public:
  // By the name of an item, the name with its place in the nested dict that torch makes of it. Empty:
  // planner_data, where torch looks for these places, is left out.
  using Naming = std::function<DcpName(std::string_view name)>;

  // The type that a tensor of the store gets. Empty: its own.
  using Typing = std::function<DType(i32 tensor)>;

  PlainLayout(const Store& store, i64 ranks, bool weights_only, const Naming& named, const Typing& typed);
  // With the places that the source's .metadata records; a name without one is one key.
  PlainLayout(const Store& store, i64 ranks, bool weights_only, const Typing& typed = {});

  // Adds the objects of the source to the layout, without the optimizer's if only weights are wanted. Called
  // once.
  std::vector<CarriedRecord> add_objects();

 private:
  DcpName named(std::string_view name) const;
  bool is_sharded(i32 tensor) const;
  void add_share(i32 key, i64 rank);
  void add_stretches(i32 key, i64 rank, i64 offset, i64 size);

  const Store& store_;
  i64 ranks_;
  Naming naming_;
  std::optional<SavedStates> states_;                          // if only weights are wanted
  std::map<i32, std::vector<std::pair<i64, i64>>> stretches_;  // by key: the same ones for every rank

 public:
  DcpLayout layout;
  std::vector<i32> tensors;  // of the store, by key of the layout
  std::vector<i64> left_behind;
  i64 left_behind_objects = 0;
};

}  // namespace mckpt::impl
