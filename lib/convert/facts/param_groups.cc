// Groups that differ in no deciding field fit every parameter: a run without weight decay has one group.
#include "convert/facts/param_groups.h"

#include <algorithm>

#include "core/fsdp/grid.h"
#include "io/dcp/run/args.h"
#include "mappings/model/parameter.h"
#include "mappings/model/parameter_marks.h"

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

bool is_true(const PickleValue* flag) {
  return flag && flag->is(PickleValue::Kind::kBool) && flag->as_bool();
}

std::optional<double> number(const PickleValue* value) {
  if (!value || !(value->is_int() || value->is(PickleValue::Kind::kFloat))) return std::nullopt;
  return value->to_float("a learning rate");
}

bool of_experts(PickleValue group) { return is_true(group.find(kExpertGroup)); }

// Leaves the groups of which the field is as wanted, unless it is alike in all of them.
template <typename Field>
void narrow(std::vector<PickleValue>& groups, Field field, bool wanted) {
  bool differs = std::ranges::any_of(groups, [&](PickleValue g) { return field(g) != field(groups[0]); });
  if (differs) std::erase_if(groups, [&](PickleValue g) { return field(g) != wanted; });
}

}  // namespace

ParamGroups::ParamGroups(PickleValue optimizer, const PickleValue* args) {
  if (args) rate_of_ends_ = number(arg_of(*args, "decoupled_lr"));
  gather(optimizer);
}

// Newer versions mark no such group; it has the rate that the args give, in place of the schedule's
// (`default_config`).
bool ParamGroups::of_ends(PickleValue group) const {
  if (is_true(group.find("is_decoupled_lr"))) return true;
  const PickleValue* usual = group.find("default_config");
  return rate_of_ends_ && usual && !is_true(usual) && number(group.find("max_lr")) == rate_of_ends_;
}

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

GroupMarks group_marks(const ModelParameter& p, const PickleValue* args) {
  const bool norms = args && is_true(arg_of(*args, "apply_wd_to_qk_layernorm"));
  const bool norm = p.name.find("q_layernorm.") != p.name.npos || p.name.find("k_layernorm.") != p.name.npos;
  return {decays(p) || (norms && norm), p.expert(), marks_of(p, Grid{}).embedding_or_output};
}

std::vector<PickleValue> ParamGroups::fitting(const GroupMarks& marks) const {
  std::vector<PickleValue> out = groups_;
  if (!out.empty()) narrow(out, of_experts, marks.expert);
  if (!out.empty()) narrow(out, decaying, marks.decays);
  if (!out.empty())
    narrow(
        out, [&](PickleValue g) { return of_ends(g); }, marks.at_end);
  return out;
}

std::optional<PickleValue> ParamGroups::of(const GroupMarks& marks) const {
  const std::vector<PickleValue> groups = fitting(marks);
  return groups.size() == 1 ? std::optional(groups[0]) : std::nullopt;
}

}  // namespace mckpt::impl
