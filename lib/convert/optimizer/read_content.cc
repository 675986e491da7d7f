// A reader gathers groups first, then the tensors of states and weights. Groups are folded by their options
// where the format has them by parameter.
#include "convert/optimizer/read_content.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "convert/facts/param_groups.h"
#include "convert/facts/run_facts.h"
#include "convert/facts/scalar.h"
#include "convert/open/checkpoint.h"
#include "convert/optimizer/pickled_groups.h"
#include "core/base/error.h"
#include "core/base/name_hash.h"
#include "core/base/text.h"
#include "core/items/item_cast.h"
#include "core/items/shape.h"
#include "io/dcp/keys/dialect.h"
#include "io/dcp/keys/key.h"
#include "io/dcp/keys/param_groups.h"
#include "io/dcp/keys/without_states.h"
#include "io/dcp/run/args.h"
#include "io/pickle/value.h"
#include "io/store/state_part.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

using Options = OptimizerContent::Options;
using Group = OptimizerContent::Group;
using Parameter = OptimizerContent::Parameter;

// Adds up the content; parameters keep the order in which they were met.
class Content {
 public:
  Parameter& parameter(const std::string& name) {
    auto [at, fresh] = places_.try_emplace(name, std::ssize(out.parameters));
    if (fresh) out.parameters.push_back({.name = name});
    return out.parameters[at->second];
  }

  i64 add_group(std::string name, Options options, i64 optimizer = 0) {
    out.groups.push_back({std::move(name), std::move(options), optimizer});
    return std::ssize(out.groups) - 1;
  }

  // A parameter in the group; a parameter of two groups stays in the first one.
  void list(const std::string& name, i64 group, bool again = false) {
    out.lists = true;
    if (Parameter& p = parameter(name); p.group < 0) p.group = group, p.again = again;
  }

  void state(const Store& store, i64 tensor, const std::string& name, std::string_view field) {
    Parameter& p = parameter(name);
    const std::span<const i64> dims = store.dims(tensor);
    if (is_counter(field) && Shape(dims).items() == 1) {
      try {
        p.step = shortest_number(cat(scalar_of(store, tensor)));
      } catch (const Error& e) {
        if (e.code() == Code::kInterrupted) throw;
      }
      return;
    }
    if (std::ranges::find(p.states, field) == p.states.end()) p.states.emplace_back(field);
    p.tensors.push_back(tensor);
    if (!p.has_dims && !dims.empty()) p.dims.assign(dims.begin(), dims.end()), p.has_dims = true;
  }

  void weight(const Store& store, i64 tensor, const std::string& name) {
    out.model = true;
    Parameter& p = parameter(name);
    p.in_model = true;
    p.dims.assign(store.dims(tensor).begin(), store.dims(tensor).end()), p.has_dims = true;
  }

  OptimizerContent out;

 private:
  NameMap<std::string, i64> places_;
};

bool is_number(std::string_view name) {
  return !name.empty() && name.find_first_not_of("0123456789") == name.npos;
}

// The name of a parameter in a key: the whole parameter of a stored piece, or a number.
std::string name_in(const DcpKey& key) {
  return is_number(key.parameter) ? cat("number ", key.parameter) : parameter_of_piece(key.parameter);
}

void gather_keys(const Store& store, DcpDialect dialect, Content& content) {
  for (i64 t = 0; t < store.tensor_count(); t++) {
    content.out.buckets |= store.name(t).find("optimizer.distributed.") != std::string_view::npos;
    const DcpKey key = split_key(dialect, store.name(t));
    if (key.section == DcpKey::Section::kState) content.state(store, t, name_in(key), key.field);
    if (key.section == DcpKey::Section::kModel && !is_without_states(key.parameter))
      content.weight(store, t, name_in(key));
  }
}

constexpr std::string_view kSchedule = "opt_param_scheduler", kSteps = "num_steps";

bool is_above_zero(const PickleValue* number) { return number && number->is_int() && number->as_int() > 0; }

// Whether an object of the store says that the schedule took a step.
bool is_scheduled(const Store& store) {
  for (i64 o = 0; o < std::ssize(store.objects()); o++) {
    const std::string_view name = store.objects()[o].name;
    const bool whole = name.ends_with(kSchedule);
    if (!whole && !name.ends_with(cat(kSchedule, ".", kSteps))) continue;
    const std::shared_ptr<const PickleValue> value = store.object(o);
    return value &&
           is_above_zero(whole && value->is(PickleValue::Kind::kDict) ? value->find(kSteps) : value.get());
  }
  return false;
}

// Groups that name their parameters, as optimizer_groups() folds them.
void gather_named(const Store& store, Content& content) {
  const OptimizerGroups all = optimizer_groups(store);
  for (const OptimizerGroup& g : all.groups) {
    Options options;
    for (const auto* fields : {&all.common, &g.fields})
      for (const auto& [name, value] : *fields) options[name] = shortest_number(value);
    const i64 group = content.add_group(cat("group ", std::ssize(content.out.groups)), std::move(options));
    for (const std::string& name : g.parameters) content.list(parameter_of_piece(name), group);
  }
}

// Groups whose lists have numbers.
void gather_numbered(const Store& store, Content& content) {
  std::map<std::string, Options, std::less<>> by_group;
  for (i64 o = 0; o < std::ssize(store.objects()); o++) {
    const std::optional<GroupField> at = group_field(store.objects()[o].name);
    if (!at || at->field == "params") continue;
    try {
      if (auto value = store.object(o))
        by_group[std::string(at->group)][std::string(at->field)] = option_text(*value);
    } catch (const Error& e) {
      if (e.code() == Code::kInterrupted) throw;
    }
  }
  for (const ListedGroup& listed : listed_groups(store, [](i64, const Error&) {})) {
    if (listed.numbers.empty()) continue;
    const i64 group = content.add_group(cat("group ", listed.group), by_group[listed.group]);
    for (i64 n : listed.numbers) content.list(numbered_parameter(n), group);
  }
}

// The states of a list.
struct PickledList {
  std::string front;  // "mp_rank_00/optimizer.optimizer.state."
  std::string owner;  // in front of the names of parameters, where several files or optimizers have numbers
  bool joined =
      false;  // of rank files, whose tensors are joined: the model's have the names of the parameters
};

std::string place_of(std::string_view front) {
  return cat(front.substr(0, front.find_last_not_of(".:/") + 1), ": ");
}

// Ranks of FSDP have the same groups, which are one; a group that a rank has otherwise is a group of its own.
std::vector<PickledList> pickled_lists(const Store& store, Content& content) {
  const std::vector<ReadList> found = pickled_group_lists(store);
  std::map<std::string, std::vector<const ReadList*>> optimizers, by_tensor_rank;
  for (const ReadList& list : found) optimizers[without_rank(list.front)].push_back(&list);
  std::vector<PickledList> out;
  i64 optimizer = 0;
  for (const auto& [front, lists] : optimizers) {
    const std::string owner = optimizers.size() > 1 ? place_of(front) : "";
    std::vector<const ReadList*>& alike = by_tensor_rank[without_tensor_rank(front)];
    const bool again =
        std::ranges::any_of(alike, [&](const auto* l) { return l->groups == lists[0]->groups; });
    alike.push_back(lists[0]);
    for (const ReadList* list : lists)
      for (i64 g = 0; g < std::ssize(list->groups); g++) {
        const ReadGroup& group = list->groups[g];
        const bool is_first = list == lists[0];
        if (!is_first && g < std::ssize(lists[0]->groups) && lists[0]->groups[g] == group) continue;
        const i64 number = content.add_group(cat(is_first ? owner : place_of(list->front), "group ", g),
                                             group.options, optimizer);
        for (const std::string& p : group.parameters) content.list(cat(owner, p), number, again);
      }
    out.push_back({cat(front, "state."), owner, front != lists[0]->front && front.ends_with(':')});
    optimizer++;
  }
  return out;
}

// States of lists in pickles: "<front>state.<parameter>.<field>". False if none of them names its parameter.
bool gather_pickled_states(const Store& store, const std::vector<PickledList>& lists, Content& content) {
  bool named = false;
  for (i64 t = 0; !lists.empty() && t < store.tensor_count(); t++)
    for (const PickledList& list : lists) {
      std::string_view name = store.name(t);
      if (!name.starts_with(list.front)) continue;
      name.remove_prefix(list.front.size());
      const std::size_t dot = name.rfind('.');
      if (dot == name.npos) continue;
      const std::string_view parameter = name.substr(0, dot), field = name.substr(dot + 1);
      const bool number = is_number(parameter);
      if (!number && !is_state_field(field) && !is_counter(field)) continue;
      content.state(store, t, cat(list.owner, number ? "number " : "", parameter), field);
      named |= !number;
    }
  return named;
}

void gather_pickled(const Store& store, Content& content) {
  const std::vector<PickledList> lists = pickled_lists(store, content);
  const bool named = gather_pickled_states(store, lists, content);
  if (!named || lists.size() != 1 || !lists[0].joined) return;
  for (i64 t = 0; t < store.tensor_count(); t++)
    if (const std::string_view name = store.name(t);
        name.find(':') == name.npos && is_castable(store.dtype(t)) && !is_without_states(name))
      content.weight(store, t, std::string(name));
}

// Names of the parameters of each group: a list of dicts from names to shapes.
std::vector<std::vector<std::string>> zero_names(const Store& store) {
  std::vector<std::vector<std::string>> out;
  for (i64 o = 0; o < std::ssize(store.objects()); o++) {
    if (store.objects()[o].name != "param_shapes") continue;
    const std::shared_ptr<const PickleValue> list = store.object(o);
    if (!list || !list->is(PickleValue::Kind::kList)) break;
    for (PickleValue group : list->items()) {
      out.emplace_back();
      for (PickleEntry e : group.entries())
        if (e.key.is(PickleValue::Kind::kText)) out.back().emplace_back(e.key.text());
    }
    break;
  }
  return out;
}

// The file of the model names the parameters of each group, and each rank's file has the groups. Where ZeRO
// divides a group further, or DeepSpeed-MoE does, the two have other lengths, and groups are without
// parameters.
void gather_zero(const Store& store, Content& content) {
  const std::vector<std::vector<std::string>> names = zero_names(store);
  for (i64 o = 0; o < std::ssize(store.objects()); o++) {
    const std::string& name = store.objects()[o].name;
    if (!name.ends_with(cat("optimizer_state_dict.", kGroupsOfPickles)) &&
        !name.ends_with(cat("base_optimizer_state.", kGroupsOfPickles)))
      continue;
    const std::shared_ptr<const PickleValue> list = store.object(o);
    if (!list || !list->is(PickleValue::Kind::kList)) continue;
    const bool same = list->size() == std::ssize(names);
    i64 number = 0;
    for (PickleValue g : list->items()) {
      if (!g.is(PickleValue::Kind::kDict)) continue;
      const i64 group = content.add_group(cat("group ", number), options_of_group(g));
      if (same)
        for (const std::string& p : names[number]) content.list(p, group);
      number++;
    }
    break;  // the files of other ranks have the same
  }
  for (i64 t = 0; t < store.tensor_count(); t++) {
    std::string_view name = store.name(t);
    if (name.find(':') != name.npos) continue;  // of a file, not of the model
    if (!name.starts_with(kStateSection)) {
      content.weight(store, t, std::string(name));
      continue;
    }
    name.remove_prefix(kStateSection.size());
    const std::size_t dot = name.rfind('.');
    if (dot == name.npos) continue;
    const std::string_view parameter = name.substr(0, dot);
    content.state(store, t, cat(is_number(parameter) ? "number " : "", parameter), name.substr(dot + 1));
  }
  // The list is the first rank's: of DeepSpeed-MoE it lacks the experts of other ranks.
  auto unlisted = [](const Parameter& p) { return p.group < 0 && !p.states.empty(); };
  if (std::ranges::any_of(content.out.parameters, unlisted)) {
    content.out.lists = false;
    for (Parameter& p : content.out.parameters) p.group = -1;
  }
}

// The groups of torch_dist, of one optimizer or of a chain of them, without parameters. A count of steps that
// an optimizer has for all is an option of each of its groups.
void gather_common(const Store& store, Content& content) {
  const std::shared_ptr<const PickleValue> common = common_state_of(store);
  const PickleValue* optimizer = common ? common->find("optimizer") : nullptr;
  if (!optimizer || !optimizer->is(PickleValue::Kind::kDict)) return;
  if (const PickleValue* schedule = common->find(kSchedule);
      schedule && schedule->is(PickleValue::Kind::kDict))
    content.out.scheduled = is_above_zero(schedule->find(kSteps));
  auto add = [&](PickleValue of, i64 chain, bool chained) {
    const ParamGroups groups(of, nullptr);
    for (i64 g = 0; g < std::ssize(groups.all()); g++)
      content.add_group(chained ? cat("group ", g, " of optimizer ", chain) : cat("group ", g),
                        options_of_group(groups.all()[g]), chain);
  };
  i64 chained = 0;
  for (PickleEntry e : optimizer->entries())
    if (e.key.is_int()) add(e.value, e.key.as_int(), true), chained++;
  if (chained == 0) add(*optimizer, 0, false);
}

void gather(const Store& store, Content& content) {
  const DcpDialect dialect = store.driver().dialect.value_or(DcpDialect::kPlain);
  if (store.driver().zero) return gather_zero(store, content);
  if (dialect == DcpDialect::kPlain) return gather_pickled(store, content);
  if (dialect == DcpDialect::kTorchDist) {
    gather_common(store, content);
    if (!content.out.groups.empty()) gather_keys(store, dialect, content);
    return;
  }
  gather_named(store, content);
  if (content.out.groups.empty()) gather_numbered(store, content);
  gather_keys(store, dialect, content);
  content.out.scheduled = is_scheduled(store);
}

}  // namespace

OptimizerContent optimizer_content(const Store& store) {
  Content content;
  try {
    gather(store, content);
  } catch (const Error& e) {
    if (e.code() == Code::kInterrupted) throw;
    return {};
  }
  auto trained = [](const Parameter& p) { return !p.states.empty(); };
  const bool some = !content.out.groups.empty() || std::ranges::any_of(content.out.parameters, trained);
  return some ? std::move(content.out) : OptimizerContent{};
}

OptimizerContent optimizer_content(const CheckpointModel& checkpoint) {
  Content content;
  const RunFacts facts = checkpoint.facts();
  std::map<Options, i64> groups;
  for (const auto& [name, options] : facts.options()) {
    Options texts;
    for (const RunFact* fact : options)
      if (auto value = facts.value(*fact)) texts[fact->name] = option_text(*value);
    auto [at, fresh] = groups.try_emplace(texts, std::ssize(content.out.groups));
    if (fresh) content.add_group(cat("group ", at->second), texts);
    content.list(name, at->second);
  }
  if (groups.empty()) return {};
  for (const RunFact& fact : facts.all)
    if (fact.kind == FactKind::kSchedule && fact.name == kSteps)
      if (auto value = facts.value(fact)) content.out.scheduled = is_above_zero(value.get());
  gather_keys(checkpoint.store(), DcpDialect::kFsdpDtensor, content);
  return std::move(content.out);
}

}  // namespace mckpt::impl
