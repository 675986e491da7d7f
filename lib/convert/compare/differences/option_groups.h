// The options of an optimizer, where a side has groups of them and does not say which parameters are in
// which: torch_dist lists none, and not every parameter fits one group alone. Groups are compared by what
// they say, in any order:
//
//   the other side has options by parameter   each parameter's are those of a group that may be its own, and every group
//                                             is a parameter's
//   the other side has such groups too        each group has an equal one
//
//   the other side has neither                nothing is compared: the conversion lost them
//
// Which parameter is in which group is not compared.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/verify/verify.h"

namespace mckpt::impl {

class CheckpointModel;

struct OptionDifferences {
  std::vector<Finding> findings;
  std::vector<Difference> differences;  // the values that the findings report
  std::string not_compared =
      "which parameter is in which group of the optimizer, which torch_dist does not say";
};

// Nothing where both sides have the options of each parameter, or none at all.
std::optional<OptionDifferences> option_differences(const CheckpointModel& tested,
                                                    const CheckpointModel& source);

// Whether the object is an option of a parameter, which option_differences() compares.
bool is_option(std::string_view object);

}  // namespace mckpt::impl
