// Every file is compared with the first one; groups of the optimizer, which list the parameters of a stage,
// with the groups of the first file of the stage, group by group. The first files of two stages have groups
// of other parameters, so there a group is compared with the one that has the same marks, and only in options
// that both have: a stage may have no parameter that makes a group, and a group without parameters has made
// no steps.
#include "io/saves/megatron_save.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/fsdp/rank_folders.h"
#include "io/dcp/run/sizes.h"
#include "io/pickle/differences.h"
#include "io/pickle/render.h"
#include "io/pickle/value.h"
#include "io/saves/other_save.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

using Value = std::shared_ptr<const PickleValue>;

constexpr std::string_view kArgs = "args", kGroups = "param_groups";
constexpr std::string_view kShared[] = {"iteration", kArgs, "checkpoint_version", "opt_param_scheduler",
                                        "num_floating_point_operations_so_far"};
// The names by which Megatron and torch's launcher tell the ranks of a run apart, beside "..._parallel_rank".
constexpr std::string_view kOfTheRank[] = {"rank", "local_rank", "node_rank", "group_rank", "role_rank"};
// By these Megatron recognises a group that it loads; other options follow from them.
constexpr std::string_view kMarks[] = {"wd_mult", "lr_mult", "is_expert_parallel", "is_decoupled_lr",
                                       "max_lr",  "min_lr",  "default_config"};
constexpr std::size_t kMostNamed = 8;
constexpr i64 kMostFields = 1000;

bool same_storage(PickleValue, PickleValue) { return true; }

// The values of one rank's file that are compared.
struct RankSays {
  std::string_view folder;
  std::map<std::string_view, Value> shared, groups;  // by name in the file
};

std::vector<RankSays> said_by_ranks(const Store& store) {
  std::vector<RankSays> out;
  for (i64 o = 0; o < std::ssize(store.objects()); o++) {
    std::string_view name = store.objects()[o].name, folder = name.substr(0, name.find('/'));
    std::string_view inside = name.substr(std::min(name.size(), folder.size() + 1));
    const bool groups = inside.starts_with("optimizer") && inside.ends_with(kGroups);
    if (!groups && std::ranges::find(kShared, inside) == std::end(kShared)) continue;
    if (out.empty() || out.back().folder != folder) out.push_back({folder, {}, {}});
    try {
      auto& values = groups ? out.back().groups : out.back().shared;
      if (Value value = store.object(o)) values.emplace(inside, std::move(value));
    } catch (const Error&) {  // what is wrong with an object is reported where it is read
    }
  }
  return out;
}

// The field of the args that a difference is in: "lr" of ".lr", "betas" of ".betas[1]".
bool is_of_the_rank(std::string_view at) {
  if (!at.starts_with('.')) return false;
  std::string_view field = at.substr(1, at.find_first_of(".[", 1) - 1);
  return std::ranges::find(kOfTheRank, field) != std::end(kOfTheRank) || field.ends_with("_parallel_rank");
}

// A difference between one file and another.
struct Unlike {
  std::vector<std::string> values, texts;
  void add(std::string_view name, std::string_view at, std::string_view here, std::string_view there,
           bool text = false) {
    (text ? texts : values).push_back(unlike_value(cat(name, escaped(at)), here, there));
  }
};

void compare(std::string_view name, const PickleValue* there, const PickleValue* here, Unlike& out) {
  auto is_text = [](std::string_view value) { return value.starts_with('\'') || value.starts_with('"'); };
  auto is_none = [](std::string_view value) { return value == "None" || value == "nothing"; };
  if (!there || !here) return out.values.push_back(cat(name, here ? " is here alone" : " is missing here"));
  for (const PickleDifference& d : pickle_differences(*there, *here, kMostFields, same_storage).first) {
    if (name == kArgs && is_of_the_rank(d.at)) continue;
    const bool a = is_text(d.expected), b = is_text(d.found);
    const bool text = name == kArgs && (a || b) && (a || is_none(d.expected)) && (b || is_none(d.found));
    out.add(name, d.at, d.found, d.expected, text);
  }
}

const PickleValue* found_in(const std::map<std::string_view, Value>& values, std::string_view name) {
  auto at = values.find(name);
  return at == values.end() ? nullptr : at->second.get();
}

// `common`: options that both have. Tensors are not options here: the optimizer's are compared as its states.
void compare_options(const std::string& group, PickleValue there, PickleValue here, bool common,
                     Unlike& out) {
  auto name_of = [&](PickleEntry e) -> std::optional<std::string_view> {
    if (!e.key.is(PickleValue::Kind::kText) || e.key.text() == "params" || e.value.row()) return std::nullopt;
    return e.key.text();
  };
  for (PickleEntry e : here.entries()) {
    const std::optional<std::string_view> name = name_of(e);
    const PickleValue* other = name ? there.find(*name) : nullptr;
    if (!name || (other && other->row()) || (!other && common)) continue;
    compare(cat(group, ".", escaped(*name)), other, &e.value, out);
  }
  for (PickleEntry e : there.entries())
    if (const std::optional<std::string_view> name = name_of(e); name && !common && !here.find(*name))
      compare(cat(group, ".", escaped(*name)), &e.value, nullptr, out);
}

std::vector<PickleValue> listed_groups(const PickleValue& list) {
  std::vector<PickleValue> out;
  for (PickleValue group : list.items()) out.push_back(group);
  return out;
}

// Ranks of one stage have the parts of the same parameters in the same groups.
void compare_groups_of_stage(const RankSays& there, const RankSays& here, Unlike& out) {
  for (const auto& [name, value] : here.groups)
    if (!there.groups.contains(name)) compare(name, nullptr, value.get(), out);
  for (const auto& [name, value] : there.groups) {
    const PickleValue* mine = found_in(here.groups, name);
    if (!mine) {
      compare(name, value.get(), nullptr, out);
      continue;
    }
    const std::vector<PickleValue> theirs = listed_groups(*value), own = listed_groups(*mine);
    if (theirs.size() != own.size())
      out.add(name, "", cat("a list of ", own.size()), cat("one of ", theirs.size()));
    else
      for (std::size_t g = 0; g < own.size(); g++)
        compare_options(cat(name, "[", g, "]"), theirs[g], own[g], false, out);
  }
}

struct NamedGroup {
  std::string name;
  PickleValue group;
};

// By marks; nothing for marks that several groups have.
std::map<std::string, std::optional<NamedGroup>> groups_by_marks(const RankSays& rank) {
  std::map<std::string, std::optional<NamedGroup>> out;
  for (const auto& [name, value] : rank.groups) {
    std::size_t number = 0;
    for (PickleValue group : value->items()) {
      std::string marks;
      for (std::string_view mark : kMarks)
        if (const PickleValue* said = group.find(mark)) marks += cat(mark, "=", pickle_line(*said), ";");
      auto [at, fresh] = out.try_emplace(marks, NamedGroup{cat(name, "[", number++, "]"), group});
      if (!fresh) at->second.reset();
    }
  }
  return out;
}

void compare_groups_of_run(const RankSays& there, const RankSays& here, Unlike& out) {
  const auto theirs = groups_by_marks(there);
  for (const auto& [marks, own] : groups_by_marks(here))
    if (auto other = theirs.find(marks); own && other != theirs.end() && other->second)
      compare_options(own->name, other->second->group, own->group, true, out);
}

// The number of the stage in the folder's name, where the second number does not count experts.
i64 stage_of(std::string_view folder, bool one_stage) {
  const std::vector<i64> numbers = rank_folder_numbers(folder);
  return numbers.size() < 2 || one_stage ? 0 : numbers[1];
}

// One finding for the values, one for the texts.
void report(const RankSays& here, const RankSays& there, const Unlike& unlike, std::vector<Finding>& out) {
  const std::string file = cat(here.folder, "/model_optim_rng.pt");
  if (!unlike.values.empty())
    out.push_back(
        other_save(file, cat("that of ", there.folder), unlike.values, "copy the folder again as a whole"));
  if (!unlike.texts.empty())
    out.push_back({.code = Code::kMixedSaves,
                   .file = file,
                   .message = cat("texts of the args are others than in the file of ", there.folder, ": ",
                                  listed(unlike.texts, kMostNamed)),
                   .warning = true});
}

}  // namespace

std::vector<Finding> mixed_saves(const Store& store) {
  std::vector<Finding> out;
  const std::vector<RankSays> ranks = said_by_ranks(store);
  if (ranks.empty()) return out;
  const PickleValue* args = found_in(ranks[0].shared, kArgs);
  const bool one_stage = args && run_sizes(*args).pipeline_stages.value_or(0) == 1;
  std::map<i64, const RankSays*> first_of_stage;
  for (const RankSays& rank : ranks) {
    Unlike unlike;
    for (std::string_view name : kShared) {
      const PickleValue *there = found_in(ranks[0].shared, name), *here = found_in(rank.shared, name);
      if (there || here) compare(name, there, here, unlike);
    }
    const auto [stage, first] = first_of_stage.try_emplace(stage_of(rank.folder, one_stage), &rank);
    if (first) compare_groups_of_run(ranks[0], rank, unlike);
    if (!first && stage->second == &ranks[0]) compare_groups_of_stage(ranks[0], rank, unlike);
    report(rank, ranks[0], unlike, out);
    if (first || stage->second == &ranks[0]) continue;
    Unlike groups;
    compare_groups_of_stage(*stage->second, rank, groups);
    report(rank, *stage->second, groups, out);
  }
  return out;
}

}  // namespace mckpt::impl
