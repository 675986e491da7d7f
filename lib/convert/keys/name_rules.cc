// All kinds of rules match names with glob_match(); the settings that an error names are `dtype_rule`,
// `freeze` and `fsdp_module`.
#include "convert/keys/name_rules.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/name_hash.h"
#include "core/base/names.h"
#include "mappings/model/parameter.h"

namespace mckpt::impl {
namespace {

// Throws kNoSuchTensor unless the glob matches one of the `names` names. The cost is one match for each name.
void refuse_unmatched_glob(const char* setting, std::string_view glob, i64 names,
                           const std::function<std::string_view(i64)>& name) {
  for (i64 i = 0; i < names; i++)
    if (glob_match(glob, name(i))) return;
  throw Error(Code::kNoSuchTensor, cat("`", setting, "`: no name matches"))
      .found(escaped(glob))
      .help("a glob must match the whole name, as in '*.input_layernorm.weight'");
}

// The names of the modules around a parameter, the outermost first.
std::vector<std::string_view> modules_around(std::string_view parameter) {
  std::vector<std::string_view> out;
  for (std::size_t dot = parameter.find('.'); dot != parameter.npos; dot = parameter.find('.', dot + 1))
    out.push_back(parameter.substr(0, dot));
  return out;
}

}  // namespace

std::optional<std::size_t> shadowed_glob(std::span<const std::string_view> globs, i64 names,
                                         const std::function<std::string_view(i64)>& name) {
  const std::size_t count = globs.size();
  std::vector<i64> matched(count);
  std::vector<std::vector<i64>> both(count, std::vector<i64>(count));  // names that two globs match
  for (i64 i = 0; i < names; i++) {
    std::vector<std::size_t> of_name;
    for (std::size_t g = 0; g < count; g++)
      if (glob_match(globs[g], name(i))) of_name.push_back(g);
    for (std::size_t g : of_name) {
      matched[g]++;
      for (std::size_t other : of_name) both[g][other]++;
    }
  }
  for (std::size_t g = 0; g < count; g++)
    for (std::size_t front = 0; front < g; front++)
      if (globs[front] == globs[g] || (both[g][front] == matched[g] && matched[front] > matched[g])) return g;
  return std::nullopt;
}

std::optional<DType> DtypeRules::of(std::string_view name) const {
  std::optional<DType> type;
  for (const Rule& rule : rules_)
    if (glob_match(rule.glob, name)) type = rule.type;
  return type;
}

std::string DtypeRules::text() const {
  std::string out;
  for (const Rule& rule : rules_) out += cat(" ", rule.glob, "=", dtype_name(rule.type));
  return out;
}

void DtypeRules::refuse_unmatched(i64 names, const std::function<std::string_view(i64)>& name) const {
  for (const Rule& rule : rules_) refuse_unmatched_glob("dtype_rule", rule.glob, names, name);
  std::vector<std::string_view> globs;
  for (const Rule& rule : rules_) globs.insert(globs.begin(), rule.glob);
  const std::optional<std::size_t> shadowed = shadowed_glob(globs, names, name);
  if (!shadowed) return;
  const Rule& rule = rules_[rules_.size() - 1 - *shadowed];
  throw Error(Code::kNoSuchTensor,
              "`dtype_rule`: a later rule decides about every name that this rule matches")
      .found(cat(escaped(rule.glob), "=", dtype_name(rule.type)))
      .note("of several rules that match a name, the last decides")
      .help("give general rules first and exceptions after them, or leave the rule out");
}

FrozenNames::FrozenNames(std::vector<std::string> globs) : globs_(std::move(globs)) {
  none_ = std::erase(globs_, "none") > 0;
}

std::string FrozenNames::text() const {
  std::string out = none_ ? "none" : "";
  for (const std::string& glob : globs_) out += cat(out.empty() ? "" : " ", glob);
  return out;
}

std::string UnitModules::text() const {
  std::string out;
  for (const std::string& glob : globs_) out += cat(out.empty() ? "" : " ", glob);
  return out;
}

void FrozenNames::apply(std::vector<ModelParameter>& parameters) const {
  for (ModelParameter& p : parameters) {
    if (none_) p.trainable = true;
    for (const std::string& glob : globs_)
      if (glob_match(glob, p.global_name)) p.trainable = false;
  }
}

void UnitModules::apply(std::vector<ModelParameter>& parameters) const {
  NameMap<std::string, i64> number;  // of the units, in order of registration
  for (ModelParameter& p : parameters) {
    const std::vector<std::string_view> around = modules_around(p.global_name);  // the outermost first
    std::string_view innermost;
    for (const std::string& glob : globs_) {
      auto at = std::ranges::find_if(around, [&](std::string_view m) { return glob_match(glob, m); });
      if (at != around.end() && at->size() > innermost.size()) innermost = *at;
    }
    if (innermost.empty()) continue;
    p.unit = number.try_emplace(std::string(innermost), std::ssize(number)).first->second;
    p.unit_class = UnitClass::kTransformerLayer;
  }
}

void UnitModules::refuse_unmatched(const std::vector<ModelParameter>& parameters) const {
  std::vector<std::string_view> modules;
  for (const ModelParameter& p : parameters)
    for (std::string_view module : modules_around(p.global_name)) modules.push_back(module);
  for (const std::string& glob : globs_)
    refuse_unmatched_glob("fsdp_module", glob, std::ssize(modules), [&](i64 i) { return modules[i]; });
}

void FrozenNames::refuse_unmatched(const std::vector<ModelParameter>& parameters) const {
  auto name = [&](i64 p) -> std::string_view { return parameters[p].global_name; };
  for (const std::string& glob : globs_) refuse_unmatched_glob("freeze", glob, std::ssize(parameters), name);
}

}  // namespace mckpt::impl
