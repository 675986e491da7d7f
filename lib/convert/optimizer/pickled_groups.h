// The groups of an optimizer as programs pickle them: a list of dicts, anywhere in a file of torch.save.
//
//   mp_rank_00/optimizer.optimizer.param_groups   [{"lr": 0.2, "params": [0, 1]}, {"lr": 0.1, "params": [2]}]
//   optim:rank_2:param_groups                     the same on every rank of FSDP: without_rank() is "optim:"
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "convert/optimizer/content.h"
#include "core/base/int.h"

namespace mckpt::impl {

class PickleValue;
class Store;

inline constexpr std::string_view kGroupsOfPickles = "param_groups";

// A group of a list in a pickle, and its parameters in order.
struct ReadGroup {
  OptimizerContent::Options options;
  std::vector<std::string> parameters;

  bool operator==(const ReadGroup&) const = default;
};

// A list of groups as one value of a pickle: "mp_rank_00/optimizer.optimizer.param_groups".
struct ReadList {
  std::string front;  // "mp_rank_00/optimizer.optimizer."
  std::vector<ReadGroup> groups;
};

// "7" for 7.0, so that an option and a tensor of steps are one value.
std::string shortest_number(std::string text);
// An option as Python prints it; a number has its shortest form.
std::string option_text(PickleValue value);
// All options of a group but its list of parameters.
OptimizerContent::Options options_of_group(PickleValue group);
// The name of a parameter that has a number alone.
std::string numbered_parameter(i64 number);

// All lists of the store. One that cannot be read is left out: the check of objects reports it.
std::vector<ReadList> pickled_group_lists(const Store& store);

// Without the rank that an object of rank files has in front: "optim:" of "optim:rank_2:". The tensors of all
// ranks are joined under such a name. The same text for any other front.
std::string without_rank(const std::string& front);
// "mp_rank_*_001/" of "mp_rank_03_001/": each tensor-parallel rank has a part of the same parameters.
std::string without_tensor_rank(const std::string& front);

}  // namespace mckpt::impl
