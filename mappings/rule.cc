// The table of all rules, their look-up by name, and the checks around a call of a rule: the number of
// sources and the cell are checked before, and an error of the rule gets a note with the rule's name.
#include "mappings/rule.h"

#include "core/base/error.h"
#include "mappings/rules/families.h"

namespace mckpt::impl {

// Joined once from the lists of all files of rules.
std::span<const Rule> all_rules() {
  static const std::vector<Rule> rules = [] {
    std::vector<Rule> all;
    for (std::span<const Rule> family :
         {column_rules(), row_rules(), replicate_rules(), vocab_rules(), qkv_rules(), mla_rules(),
          gated_mlp_rules(), gated_expert_rules(), expert_rules(), gdn_rules(), mamba_rules()})
      all.insert(all.end(), family.begin(), family.end());
    return all;
  }();
  return rules;
}

// Throws kUsage that suggests the nearest name.
const Rule& rule_named(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Rule& rule : all_rules()) {
    if (rule.name == name) return rule;
    names.push_back(rule.name);
  }
  Error error(Code::kUsage, cat("there is no mapping rule '", escaped(name), "'"));
  if (std::string_view near = nearest(name, names); !near.empty())
    error.help(cat("did you mean ", near, "?"));
  throw error;
}

Holding hold(const Rule& rule, const RuleInput& in) {
  try {
    if (rule.parts_of_sources ? in.sources.empty() : in.sources.size() != rule.roles.size())
      throw Error(Code::kSourceShape, "the number of source tensors is wrong")
          .expected(cat(rule.roles.size(), ": ", listed(rule.roles, rule.roles.size())))
          .found(in.sources.size());
    if (in.part.count < 1 || in.part.index < 0 || in.part.index >= in.part.count)
      throw Error(Code::kBadGrid, "there is no such tensor-parallel part")
          .expected(cat("a part of [0, ", in.part.count, ")"))
          .found(in.part.index);
    return rule.hold(in);
  } catch (Error& e) {
    e.note(cat("mapping rule: ", rule.name));
    throw;
  }
}

GlobalShape global_shape(const Holding& holding, i64 parts) {
  const Shape& local = holding.shape.shape;
  int d = holding.partition_dim;
  if (d < 0) return {local};
  return {local.with_dim(d, checked_mul(local[d], parts / holding.copies, "a whole parameter"))};
}

}  // namespace mckpt::impl
