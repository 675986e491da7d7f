// Groups that differ in no deciding field fit every parameter: a run without weight decay has one group.
#include "convert/objects/param_groups.h"

#include <algorithm>

namespace mckpt::impl {
namespace {

// NeMo puts "pre_" in front of some fields.
const PickleValue* field_of(PickleValue group, std::string_view name, std::string_view nemo) {
  const PickleValue* value = group.find(name);
  return value ? value : group.find(nemo);
}

bool decaying(PickleValue group) {
  const PickleValue* mult = field_of(group, "wd_mult", "pre_wd_mult");
  return !mult || !(mult->is_int() || mult->is(PickleValue::Kind::kFloat)) || mult->to_float("wd_mult") != 0;
}

bool of_experts(PickleValue group) {
  const PickleValue* flag = group.find(kExpertGroup);
  return flag && flag->is(PickleValue::Kind::kBool) && flag->as_bool();
}

// Leaves the groups of which the field is as wanted, unless it is alike in all of them.
template <typename Field>
void narrow(std::vector<PickleValue>& groups, Field field, bool wanted) {
  bool differs = std::ranges::any_of(groups, [&](PickleValue g) { return field(g) != field(groups[0]); });
  if (differs) std::erase_if(groups, [&](PickleValue g) { return field(g) != wanted; });
}

}  // namespace

void ParamGroups::gather(PickleValue value) {
  using Kind = PickleValue::Kind;
  if (value.is(Kind::kList))
    for (PickleValue item : value.items()) gather(item);
  if (!value.is(Kind::kDict)) return;
  if (const PickleValue* listed = value.find("param_groups"); listed && listed->is(Kind::kList)) {
    for (PickleValue group : listed->items())
      if (group.is(Kind::kDict)) groups_.push_back(group);
    return;
  }
  for (PickleEntry e : value.entries())
    if (e.key.is_int() || (e.key.is(Kind::kText) && e.key.text() == "optimizer")) gather(e.value);
}

std::optional<PickleValue> ParamGroups::of(bool decays, bool expert) const {
  std::vector<PickleValue> fitting = groups_;
  if (!fitting.empty()) narrow(fitting, of_experts, expert);
  if (!fitting.empty()) narrow(fitting, decaying, decays);
  if (fitting.size() != 1) return std::nullopt;
  return fitting[0];
}

}  // namespace mckpt::impl
