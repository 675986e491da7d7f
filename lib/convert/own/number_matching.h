// Which parameter has which number in an optimizer. torch.optim keeps states under numbers, and groups that
// list numbers; the numbers of each group count its parameters in the order of the model:
//
//   model order      groups                     states           by number
//   w1 [4, 4]        0: params 0, 1             0 [4, 4]         0 w1
//   b1 [4]           1: params 2                1 [2, 4]         1 w2
//   w2 [2, 4]                                   2 [4]            2 b1
//
// The parameters are taken one by one; each must have the shape of the next number of exactly one group.
// Anything else is refused: no number is guessed.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/int.h"
#include "core/base/name_hash.h"

namespace mckpt::impl {

// A parameter in the order of the model.
struct OrderedParameter {
  std::string key;
  std::vector<i64> dims;
  bool expert = false;
};

struct NumberGroup {
  std::string index;                 // in messages, and in the result
  std::vector<std::string> numbers;  // in the order of the group
  std::optional<bool>
      experts{};  // whether it has parameters of experts, or only others; none: it is not known
};

// By number, as a text: the parameter's key.
struct NumberedStates {
  NameMap<std::string, std::string> key_of;
  std::vector<std::pair<std::string, std::string>> group_of;  // by trained parameter: key, index of the group
};

// `shapes`: of the states of each number. A number without states fits any parameter: it was not trained.
// Calls `refuse`, which throws, with the reason why the numbers cannot be given to parameters without doubt.
NumberedStates match_numbers(const std::vector<OrderedParameter>& order,
                             const std::vector<NumberGroup>& groups,
                             const NameMap<std::string, std::vector<i64>>& shapes,
                             const std::function<void(std::string why)>& refuse);

}  // namespace mckpt::impl
