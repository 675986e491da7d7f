// Which tensors and objects of a save are an optimizer's, wherever in the save its dict is:
//
//   optimizer.state.h.w.exp_avg              is a state
//   actor.optimizer.state.h.w.exp_avg        is a state: "optimizer" is a key of a dict
//   actor.blocks.optimizer.w                 is not, where the save has it as {"actor": {"blocks.optimizer.w": T}}
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/base/name_hash.h"

namespace mckpt::impl {

class Store;

// By the dicts that were saved, where a DCP folder has them in planner_data; else, and where all is in one
// dict, by the names. Plain values.
class SavedStates {
 public:
  explicit SavedStates(const Store& store);
  // Whether a tensor or an object of the store has a place, by its name.
  bool has(std::string_view name) const;

 private:
  NameMap<std::string, std::size_t>
      dict_bytes_;  // of a name, what leads to its dict; none: not known, or none
};

}  // namespace mckpt::impl
