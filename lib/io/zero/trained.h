// The trained parameters of a checkpoint of DeepSpeed ZeRO, and the states of their optimizer: where each of
// them is in the flat parts of the ranks, and whether the numbers in the files agree about it.
//
//   group of 10 items, 2 ranks:  a [4], b [3]           rank 0: |aaaa b|    rank 1: |bb ...|    3 of padding
//   7 consumed, 10 available: 8 and 12 as multiples of 2 * ranks: something is wrong
//   a at 0 of rank 0, b at 4 of rank 0 and at 0 of rank 1: compared with param_slice_mappings
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/int.h"
#include "core/base/name_hash.h"
#include "io/zero/states.h"
#include "io/zero/store.h"

namespace mckpt::impl {

struct ZeroSave;

// Experts of DeepSpeed-MoE are one vector for each set of ranks that have the same ones (experts.h).

// The store that is being filled, and what of it and of its files is known.
class ZeroTensors {
 public:
  ZeroTensors(const ZeroSave& save, ZeroStore& store);

  const ZeroSave& save() const { return save_; }
  ZeroStore& store() { return store_; }

  // Keeps a group of parameters with names of its own as long as this lives.
  const ZeroGroup& keep(const ZeroGroup& group, const std::vector<std::string>& names);

  // A tensor of the model. `name` outlives this.
  void add(std::string_view name, i64 layout, i64 column);
  // Adds a second name; false if there is no tensor of the first.
  bool add_second(std::string_view name, std::string_view first);
  bool has(std::string_view name) const { return by_name_.contains(name); }
  // pre: has(name).
  Shape shape(std::string_view name) const {
    return Shape(store_.layout_dims(by_name_.find(name)->second.first));
  }

  // Rows that became tensors, or parts of them.
  void use(const ZeroPlace& place) { used_[place.file][place.row] = true; }
  bool is_used(const ZeroPlace& place) const { return used_[place.file][place.row]; }

  // A column of the places that are there; their rows are used. Places of another type than the first are
  // reported and removed. -1: there is none.
  i64 add_column(std::string_view what, std::vector<ZeroPlace> places);

 private:
  const ZeroSave& save_;
  ZeroStore& store_;
  NameMap<std::string_view, std::pair<i64, i64>> by_name_;  // layout and column
  std::vector<std::vector<bool>> used_;                     // by file and row
  std::deque<std::string> kept_names_;
  std::deque<ZeroGroup> kept_groups_;
};

// Adds float32 weights and states. Ranks that are missing leave holes; a group whose numbers do not add up is
// left out and reported.
void add_trained(ZeroTensors& to);

}  // namespace mckpt::impl
