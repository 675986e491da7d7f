// Parameters without states, states without a parameter, and moments that others have.
#include "convert/optimizer/remarks.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/base/text.h"

namespace mckpt::impl {
namespace {

constexpr const char* kStatesHelp =
    "a resumed run starts the moments of such a parameter at zero, or stops; `weights_only` takes the weights alone";

// Where groups do not say what was trained. A tower that has no states at all is frozen, and so is most of a
// model beside an adapter.
void check_unlisted(Remarks& to, const TrainedParameters& trained) {
  auto tower = [](const Trained& p) { return p.name.substr(0, p.name.find('.')); };
  std::set<std::string> trained_towers;
  for (const Trained* p : trained) trained_towers.insert(tower(*p));
  const TrainedParameters all = to.where([](const Trained& p) { return p.in_model; });
  const TrainedParameters without = to.where(
      [&](const Trained& p) { return p.in_model && p.states.empty() && trained_towers.contains(tower(p)); });
  if (without.size() * 2 > all.size()) return;
  to.add(Code::kCounterpart, without,
         cat(without.size(), " of ", counted(std::ssize(all), "parameter"),
             without.size() == 1 ? " has" : " have", " no states, which only frozen parameters may lack"),
         kStatesHelp);
}

// A parameter whose class has more kinds of states than it: a moment was lost.
void check_moments(Remarks& to, const TrainedParameters& trained) {
  std::map<std::string, TrainedParameters> classes;
  for (const Trained* p : trained) classes[class_of(*p)].push_back(p);
  TrainedParameters fewer;
  std::map<std::string, i64> all;  // kinds of moments; a parameter in fp32 needs no main weight
  for (const Trained* p : trained)
    for (const std::string& s : p->states)
      if (!has_part(s, "param") && !has_part(s, "master")) all[s]++;
  auto lacks = [](const Trained* p, const std::string& state) {
    return std::ranges::find(p->states, state) == p->states.end();
  };
  for (const Trained* p : trained)
    if (trained.size() > 2 && std::ranges::any_of(all, [&](const auto& k) {
          return k.second + 1 == std::ssize(trained) && lacks(p, k.first);
        }))
      fewer.push_back(p);
  for (const auto& of_class : classes) {
    const auto& members = of_class.second;
    std::map<std::string, i64> kinds;
    for (const Trained* p : members)
      for (const std::string& s : p->states) kinds[s]++;
    for (const Trained* p : members)
      if (std::ranges::any_of(
              kinds,
              [&](const auto& k) { return k.second * 2 >= std::ssize(members) && lacks(p, k.first); }) &&
          std::ranges::find(fewer, p) == fewer.end())
        fewer.push_back(p);
  }
  to.add(Code::kCounterpart, fewer,
         cat(fewer.size(), " of ", counted(std::ssize(trained), "parameter"),
             fewer.size() == 1 ? " lacks" : " lack", " a state that others have"),
         kStatesHelp);
}

}  // namespace

void remark_states(Remarks& to) {
  const TrainedParameters trained = to.where([](const Trained& p) { return !p.states.empty(); });
  if (trained.empty()) return;  // saved before the first step, or without states
  if (to.content.lists) {
    const TrainedParameters listed_ones = to.where([](const Trained& p) { return p.group >= 0; });
    const TrainedParameters without =
        to.where([](const Trained& p) { return p.group >= 0 && p.states.empty(); });
    to.add(Code::kCounterpart, without,
           cat(without.size(), " of ", counted(std::ssize(listed_ones), "parameter"), " of groups",
               without.size() == 1 ? " has" : " have", " no states"),
           kStatesHelp);
    const TrainedParameters outside =
        to.where([](const Trained& p) { return p.group < 0 && !p.states.empty(); });
    to.add(Code::kCounterpart, outside,
           cat("states of ", counted(std::ssize(outside), "parameter"), " that no group lists"), kStatesHelp);
  }
  if (to.content.model && !to.content.lists && !to.content.buckets) check_unlisted(to, trained);
  if (to.content.model) {
    const TrainedParameters unknown =
        to.where([](const Trained& p) { return !p.states.empty() && !p.in_model && !is_numbered(p); });
    to.add(Code::kCounterpart, unknown,
           cat("states of ", counted(std::ssize(unknown), "parameter"), " that the model does not have"),
           kStatesHelp);
  }
  check_moments(to, trained);
}

}  // namespace mckpt::impl
