// The groups of an optimizer as torch_dist's common state has them, without the names of their parameters:
//
//   {"optimizer": {"param_groups": [{"wd_mult": 1.0, "lr": ...}, {"wd_mult": 0.0, "lr": ...}]}, ...}
//   {0: <the same, dense parameters>, 1: <the same, experts>}                with expert parallelism
//
// A run finds the group of a parameter by what decides its options: whether its weights decay, and whether it is of an
// expert.
#pragma once

#include <optional>
#include <vector>

#include "io/pickle/value.h"

namespace mckpt::impl {

// The field that is true for groups of experts.
inline constexpr std::string_view kExpertGroup = "is_expert_parallel";

// Refers to the pickle.
class ParamGroups {
 public:
  explicit ParamGroups(PickleValue optimizer) { gather(optimizer); }

  bool empty() const { return groups_.empty(); }
  // The options of the parameter's group, a dict; nothing if no group fits, or several.
  std::optional<PickleValue> of(bool decays, bool expert) const;

 private:
  void gather(PickleValue value);

  std::vector<PickleValue> groups_;
};

}  // namespace mckpt::impl
