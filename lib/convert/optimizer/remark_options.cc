// Learning rates, betas and counts of steps that one parameter or group has alone.
#include "convert/optimizer/remarks.h"

#include <algorithm>
#include <map>

#include "core/base/names.h"
#include "core/base/text.h"

namespace mckpt::impl {
namespace {

constexpr const char* kAloneHelp =
    "the options of one parameter were changed, or parts of two saves are mixed; a resumed run goes on with them";

// Megatron computes a learning rate from what a group has beside it, so groups that are alike there have one
// rate.
void check_groups_alike(Remarks& to, const std::string& option) {
  constexpr const char* kDecide[] = {"default_config", "is_decoupled_lr", "lr_mult",
                                     "max_lr",         "min_lr",          "optimizer"};
  std::map<std::vector<std::string>, std::map<std::string, std::vector<const TrainedGroup*>>> values;
  for (const TrainedGroup& g : to.content.groups) {
    if (!g.options.contains("max_lr") || !g.options.contains(option)) continue;
    std::vector<std::string> same;
    for (const char* decides : kDecide)
      same.push_back(g.options.contains(decides) ? g.options.at(decides) : "");
    values[same][g.options.at(option)].push_back(&g);
  }
  for (const auto& [same, by_value] : values) {
    if (by_value.size() < 2) continue;
    std::vector<std::string> texts;
    for (const auto& [value, groups] : by_value)
      for (const TrainedGroup* g : groups) texts.push_back(cat(g->name, " ", value));
    to.add(cat(option, " differs between ", counted(std::ssize(texts), "group"),
               " with the same max_lr and lr_mult: ", listed(texts, kMostNamed)),
           kAloneHelp);
  }
}

// Whether all but one have one value. Adds the one.
bool check_odd_one(Remarks& to, const std::string& option, const TrainedParameters& among) {
  std::map<std::string, TrainedParameters> by_value;
  for (const Trained* p : among)
    if (std::string value = to.content.option(*p, option); !value.empty()) by_value[value].push_back(p);
  if (by_value.size() != 2) return false;
  const auto one = std::ranges::find_if(by_value, [](const auto& v) { return v.second.size() == 1; });
  if (one == by_value.end()) return false;
  const auto rest = one == by_value.begin() ? std::next(one) : by_value.begin();
  if (rest->second.size() < 2) return false;
  to.add(Code::kImplausible, one->second,
         cat(option, " is ", one->first, " for this parameter alone, and ", rest->first, " for the other ",
             rest->second.size(), " like it"),
         kAloneHelp);
  return true;
}

// The embedding and the output layer may have a learning rate of their own; which numbers they have is not
// known.
bool may_differ(const Trained& p, std::string_view option) {
  return is_end(p) || (is_numbered(p) && has_part(option, "lr"));
}

bool check_alone(Remarks& to, const std::string& option) {
  if (!to.content.lists) return false;
  const TrainedParameters all =
      to.where([&](const Trained& p) { return p.group >= 0 && !may_differ(p, option); });
  if (check_odd_one(to, option, all)) return true;
  std::map<std::string, TrainedParameters> classes;
  for (const Trained* p : all) classes[class_of(*p)].push_back(p);
  bool found = false;
  for (const auto& [name, members] : classes) found |= check_odd_one(to, option, members);
  return found;
}

// All parameters of a run take the same steps.
void check_steps(Remarks& to) {
  std::map<std::string, TrainedParameters> by_value;
  for (const Trained& p : to.content.parameters)
    if (std::string step = to.content.option(p, "step"); !step.empty()) by_value[step].push_back(&p);
  if (by_value.empty()) {
    std::map<std::string, std::vector<std::string>> groups;
    for (const TrainedGroup& g : to.content.groups)
      if (auto at = g.options.find("step"); at != g.options.end()) groups[at->second].push_back(g.name);
    std::vector<std::string> texts;
    for (const auto& [step, names] : groups) texts.push_back(cat(step, " of ", listed(names, 2)));
    if (groups.size() > 1)
      to.add(cat("step differs between groups: ", listed(texts, kMostNamed)), kAloneHelp);
    return;
  }
  const auto most = std::ranges::max_element(
      by_value, [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  for (auto& [step, members] : by_value) {
    if (step == most->first) continue;
    std::ranges::sort(members,
                      [](const Trained* a, const Trained* b) { return natural_less(a->name, b->name); });
    to.add(Code::kImplausible, members,
           cat("step is ", step, " for ", counted(std::ssize(members), "parameter"), ", and ", most->first,
               " for the other ", most->second.size()),
           kAloneHelp);
  }
}

}  // namespace

void remark_options(Remarks& to) {
  for (const char* option : {"max_lr", "min_lr", "lr_mult", "initial_lr"}) check_alone(to, option);
  for (const char* option : {"lr", "betas", "eps"})
    if (!check_alone(to, option)) check_groups_alike(to, option);
  check_steps(to);
}

}  // namespace mckpt::impl
