// The parameter groups of an optimizer, as a checkpoint has them. Parameters with equal settings are one
// group, whatever the groups of the training run were:
//
//   optimizer.param_to_group_meta.module.module.module.<param>.<field>   fsdp_dtensor: a dozen objects a parameter
//   optimizer.param_groups.<i>.<field> and .params                       state dicts of torch: a list of names
//
//   group 0   wd_mult 1.0, weight_decay 0.1      the matrices
//   group 1   wd_mult 0.0, weight_decay 0.0      the norms
//   no group                                     frozen parameters of the model
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

class Error;
class Store;

// The contents of one group's field "params", in the order of the list.
struct ListedGroup {
  std::string group;               // "0"
  std::vector<std::string> names;  // of parameters, as they are in the list
  std::vector<i64> numbers;        // in the place of names, where the optimizer has none
  i64 others = 0;                  // entries that are neither
};

// The lists of all groups, as the store has them. `unreadable` gets the number of an object that cannot be
// read, and why; without it, throws what reading it throws.
std::vector<ListedGroup> listed_groups(
    const Store& store, const std::function<void(i64 object, const Error& why)>& unreadable = {});

// One group. Values are as Python would print them: "(0.9, 0.95)".
struct OptimizerGroup {
  std::map<std::string, std::string> fields;
  std::vector<std::string> parameters;  // in natural order, without prefixes of wrappers
};

// All groups of one checkpoint.
struct OptimizerGroups {
  std::string section;  // "optimizer.param_to_group_meta"; "" if the checkpoint has no groups that are known
  std::vector<OptimizerGroup> groups;         // the group of the most parameters first
  std::map<std::string, std::string> common;  // fields that are equal in all groups; not repeated there
  // Tensors of the model that no group has: frozen parameters, buffers, other names of tied weights.
  std::vector<std::string> without;
  std::vector<std::string> unknown;     // parameters of groups that the model does not have
  std::vector<std::string> unreadable;  // "name: MC1213: why" of objects that cannot be read
  // Experts whose is_expert_parallel is False. Megatron-FSDP writes False for all of them.
  i64 experts_not_marked = 0;
  i64 parameters = 0;  // in all groups
};

// Reads the objects of the groups, and nothing else. Throws nothing about a single object.
OptimizerGroups optimizer_groups(const Store& store);

}  // namespace mckpt::impl
