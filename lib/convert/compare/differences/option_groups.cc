// A group and the options of a parameter are equal if each field is. `params` and the mark of experts, which
// Megatron-FSDP does not set, are not options, and the count of steps may be beside the groups.
#include "convert/compare/differences/option_groups.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>

#include "convert/compare/differences/one_side.h"
#include "convert/facts/param_groups.h"
#include "convert/facts/run_facts.h"
#include "convert/open/checkpoint.h"
#include "core/base/error_code.h"
#include "core/base/text.h"
#include "io/dcp/keys/key.h"
#include "io/pickle/differences.h"
#include "io/store/finding.h"
#include "io/store/store.h"
#include "mappings/model/parameter.h"

namespace mckpt::impl {
namespace {

using Options = std::map<std::string, PickleValue, std::less<>>;  // by field

// The options of one side, by parameter or in groups that were given to no parameter. Values refer to
// `owners`.
struct SideOptions {
  std::map<std::string, Options, std::less<>> of_parameter;  // by name in the whole model
  std::optional<ParamGroups> groups;
  std::shared_ptr<const PickleValue> args;
  std::vector<std::shared_ptr<const void>> owners;
};

SideOptions options_of(const CheckpointModel& checkpoint) {
  SideOptions out;
  RunFacts facts = checkpoint.facts();
  for (const RunFact& f : facts.all) {
    if (f.kind != FactKind::kOption) continue;
    std::shared_ptr<const PickleValue> value = facts.value(f);
    if (!value) continue;
    out.of_parameter[*model_key(cat("model.", f.parameter))].emplace(f.name, *value);
    out.owners.push_back(std::move(value));
  }
  if (!out.of_parameter.empty() || !facts.groups) return out;
  if (const RunFact* args = facts.find(FactKind::kArgs)) out.args = facts.value(*args);
  out.groups.emplace(*facts.groups, out.args.get());
  if (out.groups->all().empty()) out.groups.reset();
  out.owners.push_back(std::move(facts.groups));
  return out;
}

Options options_of(PickleValue group) {
  Options out;
  for (PickleEntry e : group.entries())
    if (e.key.is(PickleValue::Kind::kText) && e.key.text() != "params" && e.key.text() != kExpertGroup)
      out.emplace(e.key.text(), e.value);
  return out;
}

// The fields in which the two differ, each with both values.
std::vector<Difference> differing(const Options& expected, const Options& found) {
  std::vector<Difference> out;
  auto differ = [&](const std::string& field, const PickleValue* a, const PickleValue* b) {
    const PickleValue none;
    PickleDifferences d =
        pickle_differences(a ? *a : none, b ? *b : none, 1, [](PickleValue, PickleValue) { return false; });
    if (d.count == 0 && a && b) return;
    const std::string x = d.first.empty() ? "None" : d.first[0].expected,
                      y = d.first.empty() ? "None" : d.first[0].found;
    out.push_back({.at = cat(".", field), .expected = a ? x : "nothing", .found = b ? y : "nothing"});
  };
  auto is_left = [](const std::string& field, const Options& other) {
    return field == kExpertGroup || field == "params" || (field == "step" && !other.contains(field));
  };
  for (const auto& [field, value] : expected)
    if (!is_left(field, found)) {
      auto at = found.find(field);
      differ(field, &value, at == found.end() ? nullptr : &at->second);
    }
  for (const auto& [field, value] : found)
    if (!expected.contains(field) && !is_left(field, expected)) differ(field, nullptr, &value);
  return out;
}

// One comparison; run() is called once.
class OptionGroups {
 public:
  OptionGroups(const CheckpointModel& tested, const CheckpointModel& source)
      : model_(source),
        tested_store_(tested.store()),
        source_store_(source.store()),
        tested_(options_of(tested)),
        source_(options_of(source)) {}

  std::optional<OptionDifferences> run() {
    if (!tested_.groups && !source_.groups) return std::nullopt;
    const bool both = tested_.groups && source_.groups;
    if (!both && tested_.of_parameter.empty() && source_.of_parameter.empty())
      out_.not_compared = "options of the optimizer, which only one side has";
    else if (both)
      pair_groups();
    else if (tested_.groups)
      find_groups(source_, *tested_.groups, tested_.args.get(), true);
    else
      find_groups(tested_, *source_.groups, source_.args.get(), false);
    return std::move(out_);
  }

 private:
  // Reports what differs from the group that is nearest.
  void tell(const std::string& what, std::vector<Difference> nearest, const std::string& message) {
    if (nearest.empty()) nearest.push_back({});
    for (Difference& d : nearest) {
      d.tensor = what;
      out_.findings.push_back({.code = Code::kUnequal,
                               .tensor = what,
                               .message = d.at.empty() ? message
                                                       : cat(message, ": ", d.at, ": expected ", d.expected,
                                                             ", found ", d.found)});
      out_.differences.push_back(std::move(d));
    }
  }

  // `of_tested`: the groups belong to the tested side.
  void find_groups(const SideOptions& by_parameter, const ParamGroups& groups, const PickleValue* args,
                   bool of_tested) {
    auto compared = [&](const Options& parameter, PickleValue group) {
      return of_tested ? differing(parameter, options_of(group)) : differing(options_of(group), parameter);
    };
    std::vector<PickleValue> left = groups.all();
    for (const auto& [name, options] : by_parameter.of_parameter) {
      const std::vector<PickleValue> fitting = fitting_groups(name, groups, args);
      std::vector<Difference> nearest;
      bool found = false;
      for (PickleValue group : fitting) {
        std::vector<Difference> here = compared(options, group);
        if (here.empty()) found = true, std::erase(left, group);
        if (nearest.empty() || here.size() < nearest.size()) nearest = std::move(here);
      }
      if (!found)
        tell(cat(kGroupMetaSection, name), std::move(nearest), "no group of the optimizer has these options");
    }
    for (std::size_t g = 0; g < left.size(); g++)
      tell(cat("optimizer.param_groups.", std::ranges::find(groups.all(), left[g]) - groups.all().begin()),
           {},
           of_tested ? cat("no parameter of ", side_path(source_store_), " has the options of this group")
                     : cat("no parameter has the options of this group of ", side_path(source_store_)));
  }

  // All groups for a parameter that the model does not have.
  std::vector<PickleValue> fitting_groups(const std::string& name, const ParamGroups& groups,
                                          const PickleValue* args) const {
    const i32 key = model_.keys().find(name);
    const std::vector<PickleValue> fitting =
        key < 0 ? groups.all()
                : groups.fitting(group_marks(model_.keys().parameter(model_.keys()[key]), args));
    return fitting.empty() ? groups.all() : fitting;
  }

  void pair_groups() {
    std::vector<PickleValue> left = tested_.groups->all();
    std::vector<std::pair<std::size_t, PickleValue>> missing;
    for (std::size_t g = 0; g < source_.groups->all().size(); g++) {
      const PickleValue group = source_.groups->all()[g];
      auto same = std::ranges::find_if(
          left, [&](PickleValue other) { return differing(options_of(group), options_of(other)).empty(); });
      if (same == left.end())
        missing.emplace_back(g, group);
      else
        left.erase(same);
    }
    const std::string none =
        cat("no group of the optimizer has the options of this group of ", side_path(source_store_));
    for (std::size_t m = 0; m < missing.size(); m++)
      tell(cat("optimizer.param_groups.", missing[m].first),
           m < left.size() ? differing(options_of(missing[m].second), options_of(left[m]))
                           : std::vector<Difference>{},
           none);
    for (std::size_t m = missing.size(); m < left.size(); m++)
      tell("optimizer.param_groups", {}, only_in(tested_store_, "group"));
  }

  const CheckpointModel& model_;
  const Store &tested_store_, &source_store_;
  SideOptions tested_, source_;
  OptionDifferences out_;
};

}  // namespace

bool is_option(std::string_view object) { return object.starts_with(kGroupMetaSection); }

std::optional<OptionDifferences> option_differences(const CheckpointModel& tested,
                                                    const CheckpointModel& source) {
  return OptionGroups(tested, source).run();
}

}  // namespace mckpt::impl
