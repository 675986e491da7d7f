// Decay: of groups, whose fields say the same twice, and of the parameters in them.
#include "convert/optimizer/remarks.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/base/text.h"

namespace mckpt::impl {
namespace {

constexpr const char* kDecayHelp =
    "Megatron lets matrices decay and neither norms nor biases; a resumed run goes on with these groups";

// Whether weights of the group decay; nothing where no option says so. Megatron computes weight_decay from
// wd_mult at every step.
std::optional<bool> decays(const TrainedGroup& g) {
  for (const char* option : {"wd_mult", "weight_decay"})
    if (auto at = g.options.find(option); at != g.options.end())
      if (std::optional<double> value = number_of(at->second)) return *value != 0;
  return std::nullopt;
}
std::optional<bool> decays(const OptimizerContent& content, const Trained& p) {
  return p.group < 0 ? std::nullopt : decays(content.groups[p.group]);
}
bool is_megatron(const OptimizerContent& content) {
  return std::ranges::any_of(content.groups,
                             [](const TrainedGroup& g) { return g.options.contains("wd_mult"); });
}
std::string where_decaying(const OptimizerContent& content, const TrainedParameters& of) {
  std::set<std::string> groups;
  for (const Trained* p : of) {
    const std::string decay = content.option(*p, "weight_decay");
    groups.insert(cat(content.groups[p->group].name, decay.empty() ? "" : cat(", weight_decay ", decay)));
  }
  return listed(groups, 2);
}

// Before the first step of its schedule all groups of a run have one weight_decay, whatever their wd_mult.
bool has_set_decay(const OptimizerContent& content) {
  if (content.scheduled) return true;
  std::set<std::string> values;
  for (const TrainedGroup& g : content.groups)
    if (auto at = g.options.find("weight_decay"); at != g.options.end()) values.insert(at->second);
  return values.size() > 1;
}

// weight_decay is the run's, times wd_mult: groups with one wd_mult have one weight_decay.
void check_decay_of_groups(Remarks& to) {
  const bool set = has_set_decay(to.content);
  for (const TrainedGroup& g : to.content.groups) {
    auto mult = g.options.find("wd_mult"), decay = g.options.find("weight_decay");
    if (!set || mult == g.options.end() || decay == g.options.end()) continue;
    if (number_of(mult->second) == 0.0 && number_of(decay->second).value_or(0) != 0)
      to.add(cat(g.name, " has wd_mult ", mult->second, " and weight_decay ", decay->second,
                 ": norms and biases that are in it decay"),
             kDecayHelp);
    auto unlike = [&](const TrainedGroup& o) {
      auto other = o.options.find("wd_mult"), theirs = o.options.find("weight_decay");
      return other != o.options.end() && theirs != o.options.end() && other->second == mult->second &&
             theirs->second != decay->second;
    };
    if (number_of(mult->second) != 0.0 && number_of(decay->second) == 0.0 &&
        std::ranges::any_of(to.content.groups, unlike))
      to.add(cat(g.name, " has wd_mult ", mult->second,
                 " and weight_decay 0: nothing in it decays, unlike the other groups"),
             kDecayHelp);
  }
  if (to.content.lists || to.content.buckets || !is_megatron(to.content)) return;
  if (std::ranges::all_of(to.content.groups, [](const TrainedGroup& g) { return decays(g) == true; }) &&
      !to.content.groups.empty())
    to.add(cat("no group is without decay: ", counted(std::ssize(to.content.groups), "group"),
               " with a wd_mult other than 0, so norms and biases decay"),
           kDecayHelp);
}

// Vectors that decay, or matrices that do not. A run without decay, or with decay of everything, decided so.
void check_kind(Remarks& to, bool vectors) {
  auto of_kind = [&](const Trained& p) {
    return p.has_dims && p.group >= 0 && decays(to.content, p).has_value() && is_vector(p) == vectors;
  };
  const TrainedParameters all = to.where(of_kind);
  const TrainedParameters matrices_decay = to.where([&](const Trained& p) {
    return p.group >= 0 && p.has_dims && !is_vector(p) && decays(to.content, p) == true;
  });
  std::map<std::string, std::pair<i64, i64>>
      classes;  // how many of a class are as they should be, and how many not
  TrainedParameters odd;
  for (const Trained* p : all) {
    const bool wrong = decays(to.content, *p) == vectors;
    auto& [right, other] = classes[class_of(*p)];
    (wrong ? other : right)++;
    if (wrong) odd.push_back(p);
  }
  if (odd.empty() || matrices_decay.empty()) return;
  const bool all_wrong = odd.size() == all.size();
  // Outside Megatron a run may decide for everything, or for a kind of norms.
  std::erase_if(odd, [&](const Trained* p) {
    const auto [right, wrong] = classes[class_of(*p)];
    const bool alone = right > wrong || (!all_wrong && std::ssize(odd) * 4 <= std::ssize(all));
    if (vectors && is_query_or_key_norm(*p) && right == 0) return true;
    if (!vectors && is_end(*p)) return true;
    return vectors && is_megatron(to.content) ? false : !alone;
  });
  if (odd.empty()) return;
  const std::string of = cat(odd.size(), " of ", all.size(), vectors ? " norms and biases" : " matrices");
  to.add(Code::kImplausible, odd,
         cat(of,
             vectors ? (odd.size() == 1 ? " decays (" : " decay (")
                     : (odd.size() == 1 ? " does not decay (" : " do not decay ("),
             where_decaying(to.content, odd), ")", all_wrong ? "" : ", unlike the others"),
         kDecayHelp);
}

}  // namespace

void remark_decay(Remarks& to) {
  check_decay_of_groups(to);
  if (!to.content.lists) return;
  check_kind(to, true);
  check_kind(to, false);
}

}  // namespace mckpt::impl
