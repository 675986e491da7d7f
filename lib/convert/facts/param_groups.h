// The groups of an optimizer as torch_dist's common state has them, without the names of their parameters:
//
//   {"optimizer": {"param_groups": [{"wd_mult": 1.0, "lr": ...}, {"wd_mult": 0.0, "lr": ...}]}, ...}
//   {0: <the same, dense parameters>, 1: <the same, experts>}                with expert parallelism
//
// A run finds the group of a parameter by what decides its options: whether its weights decay, whether it is
// of an expert, and whether it is the embedding or the output layer, which may have a learning rate of their
// own (--decoupled-lr).
#pragma once

#include <optional>
#include <vector>

#include "io/pickle/value.h"

namespace mckpt::impl {

struct ModelParameter;

// The field that is true for groups of experts.
inline constexpr std::string_view kExpertGroup = "is_expert_parallel";

// The marks that decide the group of a parameter.
struct GroupMarks {
  bool decays = true, expert = false;
  bool at_end = false;  // the embedding or the output layer
};

// `args` of the run: they can let the norms of queries and keys decay (--apply-wd-to-qk-layernorm). Null:
// there are none.
GroupMarks group_marks(const ModelParameter& parameter, const PickleValue* args);

// Refers to the pickle.
class ParamGroups {
 public:
  // `args` of the run; null: there are none. Groups with the learning rate that they give the embedding and
  // the output layer are the groups of these; older versions mark such groups (is_decoupled_lr).
  ParamGroups(PickleValue optimizer, const PickleValue* args);

  const std::vector<PickleValue>& all() const { return groups_; }
  // The groups that may be the parameter's: dicts of options.
  std::vector<PickleValue> fitting(const GroupMarks& marks) const;
  // The options of the parameter's group; nothing if no group fits, or several.
  std::optional<PickleValue> of(const GroupMarks& marks) const;

 private:
  void gather(PickleValue value);
  bool of_ends(PickleValue group) const;

  std::vector<PickleValue> groups_;
  std::optional<double> rate_of_ends_;
};

}  // namespace mckpt::impl
