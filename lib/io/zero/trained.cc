// Lays the parameters over the parts in the order of param_shapes, checks the numbers, and adds the tensors.
#include "io/zero/trained.h"

#include <algorithm>
#include <optional>

#include "core/base/error.h"
#include "core/items/placement.h"
#include "io/zero/experts.h"
#include "io/zero/files.h"
#include "io/zero/flat_parts.h"
#include "io/zero/turns.h"

namespace mckpt::impl {
namespace {

constexpr const char* kCounting = "the sum of parameters";

using Group = ZeroOptimizerStates::Group;

class TrainedParameters {
 public:
  explicit TrainedParameters(ZeroTensors& to)
      : to_(to),
        save_(to.save()),
        store_(to.store()),
        files_(save_.optimizers),
        count_(files_[0].states.groups.size()) {}

  void add() {
    weights_ = to_.add_column("the float32 weights", places([](const Group& g) { return g.part; }));
    if (weights_ < 0) return;
    save_.stage == 3 ? lay_by_rank() : lay_by_group();
    add_states();
  }

 private:
  struct Trained {
    const ZeroParameter* parameter;
    i64 layout;
    std::size_t group;  // of its steps
  };

  // A part is group `g` of file `k`.
  i64 part_of(std::size_t k, std::size_t g) const { return static_cast<i64>(k * count_ + g); }
  const Group& group(std::size_t k, std::size_t g) const { return files_[k].states.groups[g]; }
  std::vector<ZeroPlace> places(auto&& row_of) const {
    std::vector<ZeroPlace> out;
    for (const auto& f : files_)
      for (const Group& g : f.states.groups) out.push_back({f.file, row_of(g)});
    return out;
  }
  // The items of a part; nothing if it could not be read.
  std::optional<i64> items(std::size_t k, std::size_t g) const {
    if (group(k, g).part < 0) return std::nullopt;
    return store_.table(files_[k].file).dims(group(k, g).part)[0];
  }

  // With the padding behind them. pre: the part could be read.
  i64 padded(std::size_t k, std::size_t g) const {
    return checked_add(*items(k, g), group(k, g).padding, kCounting);
  }

  void report(std::string message, std::string path = "") {
    store_.add_finding({.code = Code::kBadShards, .file = std::move(path), .message = std::move(message)});
  }

  // ZeRO 1 and 2: the parts of a group are one vector.
  void lay_by_group() {
    const std::vector<ZeroGroup>& groups = *save_.model().groups;
    if (groups.size() != count_)
      report(cat("the model's file lists ", counted(std::ssize(groups), "group"),
                 " of parameters, the ranks' files ", count_, ": what only one side has is left out"),
             save_.models[0].path);
    for (std::size_t g = 0; g < std::min(groups.size(), count_); g++) {
      try {
        lay_sets(g, groups[g]);
      } catch (const Error& e) {
        report(cat("group ", g, ": ", e.what()));
      }
    }
  }

  // The ranks first, first + sets, first + 2 sets ..., which share one vector.
  struct Sharing {
    i64 first, sets, ranks;
    bool has(i64 rank) const { return rank % sets == first; }
    i64 place(i64 rank) const { return rank / sets; }
  };

  // One vector of all ranks; of experts one for each set of ranks.
  void lay_sets(std::size_t g, const ZeroGroup& parameters) {
    const i64 ranks = group(0, g).ranks, sets = save_.ranks / ranks;
    if (sets == 1) return lay_group(g, parameters, parameters, {0, 1, ranks});
    const ZeroLocalExperts experts(parameters);
    check_experts(g, experts, sets);
    for (i64 set = 0; set < sets; set++) {
      std::vector<std::string> names;
      for (const ZeroParameter& p : parameters) {
        if (set == 0 && !zero_expert_name(p.name))
          throw Error(Code::kBadShards,
                      "the group is cut over fewer ranks, and the parameter is of no expert")
              .tensor(p.name);
        names.push_back(experts.global_name(p.name, set));
      }
      lay_group(g, to_.keep(parameters, names), parameters, {set, sets, ranks});
    }
  }

  // Each layer has as many experts as some layer of the model has by its own account.
  void check_experts(std::size_t g, const ZeroLocalExperts& experts, i64 sets) {
    const std::vector<i64>& expected = save_.model().experts;
    for (const auto& [front, count] : experts.counts())
      if (!expected.empty() && std::ranges::find(expected, count * sets) == expected.end())
        report(cat("group ", g, " has ", counted(count, "expert"), " of ", escaped(front), " on each of ",
                   counted(sets, "rank"), ", and no layer has ", count * sets, " by num_experts"),
               save_.models[0].path);
  }

  // `local`: the parameters under the names that the ranks have.
  void lay_group(std::size_t g, const ZeroGroup& parameters, const ZeroGroup& local, const Sharing& sharing) {
    const std::vector<i64>& gaps = group(0, g).gaps;
    if (!gaps.empty() && gaps.size() != parameters.size())
      return report(cat("group ", g, " has ", counted(std::ssize(parameters), "parameter"),
                        ", but the paddings of ", gaps.size()));
    std::vector<i64> begins;
    i64 consumed = 0, needed = 0;
    for (std::size_t i = 0; i < parameters.size(); i++) {
      begins.push_back(consumed);
      needed = consumed = checked_add(consumed, parameters[i].shape.items(), kCounting);
      if (!gaps.empty()) consumed = checked_add(consumed, gaps[i], kCounting);
    }
    FlatParts flat;
    const i64 available = parts_of_group(g, sharing, flat);
    const i64 step = 2 * sharing.ranks;
    if (available < 0) return;
    if (needed > available || round_up(consumed, step, kCounting) != round_up(available, step, kCounting))
      return report(cat("the parts of group ", g, " have ", counted(available, "item"), ", but its ",
                        counted(std::ssize(parameters), "parameter"), " take ", with_commas(consumed),
                        ": they are not of one save, and are left out"));
    std::vector<std::vector<ZeroStretch>> stretches(parameters.size());
    for (std::size_t i = 0; i < parameters.size(); i++) {
      flat.cut(begins[i], {0, parameters[i].shape.items()}, stretches[i]);
      add_parameter(parameters[i], stretches[i], g);
    }
    check_addresses(g, local, stretches, sharing);
  }

  // The items of all parts, also of those that are missing; -1: not known. Ranks have equally many with their
  // padding, which is at the end of the group: 17 items over 4 ranks are 6, 6, 5 and 0. Older programs count
  // it for the last rank alone, and there as more than it has.
  i64 parts_of_group(std::size_t g, const Sharing& sharing, FlatParts& flat) {
    i64 known = 0, each = -1;
    std::vector<std::size_t> there;
    for (std::size_t k = 0; k < files_.size(); k++)
      if (sharing.has(files_[k].rank) && items(k, g)) there.push_back(k);
    for (std::size_t k : there) {
      known++;
      if (each < 0 || sharing.place(files_[k].rank) < sharing.ranks - 1) each = padded(k, g);
    }
    if (known == 0) return -1;
    const bool complete = known == sharing.ranks;
    for (std::size_t k : there) {
      const i64 place = sharing.place(files_[k].rank);
      const i64 begin = complete ? flat.end() : checked_mul(each, place, kCounting);
      if (*items(k, g) > each || (padded(k, g) != each && place < sharing.ranks - 1)) {
        report(cat("the rank's part of group ", g, " has ", with_commas(padded(k, g)), " items",
                   group(k, g).padding > 0 ? " with its padding" : "", ", other ranks' ", with_commas(each),
                   ": the group is left out"),
               files_[k].path);
        return -1;
      }
      if (*items(k, g) > 0 && complete && flat.end() != checked_mul(each, place, kCounting)) {
        report(cat("the rank's part of group ", g, " has ", with_commas(*items(k, g)),
                   " items behind the padding of another rank: the group is left out"),
               files_[k].path);
        return -1;
      }
      flat.add(part_of(k, g), begin, *items(k, g));
    }
    return complete ? flat.end() : checked_mul(each, sharing.ranks, kCounting);
  }

  // The addresses of round_robin_gradients. If a rank has none, nothing is compared.
  void check_turns(std::size_t g, const ZeroGroup& parameters, const Sharing& sharing) {
    std::vector<const NameMap<std::string_view, ZeroOptimizerStates::Address>*> addresses;
    for (i64 place = 0; place < sharing.ranks; place++) {
      const auto file = std::ranges::find_if(
          files_, [&](const auto& f) { return sharing.has(f.rank) && sharing.place(f.rank) == place; });
      if (file == files_.end() || !file->states.groups[g].addresses) return;
      addresses.push_back(&*file->states.groups[g].addresses);
    }
    if (const std::string wrong = turns_fault(addresses, parameters); !wrong.empty())
      report(
          cat("param_slice_mappings of group ", g,
              " does not fit param_shapes with round_robin_gradients, by which ranks take turns: ", wrong));
  }

  // Compares with DeepSpeed's own addresses; one finding for each file.
  void check_addresses(std::size_t g, const ZeroGroup& parameters,
                       std::span<const std::vector<ZeroStretch>> stretches, const Sharing& sharing) {
    if (save_.model().takes_turns && sharing.ranks > 1) return check_turns(g, parameters, sharing);
    std::vector<i64> there(files_.size(), 0);
    std::vector<std::string> wrong(files_.size());
    for (std::size_t i = 0; i < parameters.size(); i++)
      for (const ZeroStretch& s : stretches[i]) {
        const std::size_t k = static_cast<std::size_t>(s.part) / count_;
        there[k]++;
        if (!group(k, g).addresses || !wrong[k].empty()) continue;
        auto a = group(k, g).addresses->find(parameters[i].name);
        if (a == group(k, g).addresses->end())
          wrong[k] = cat("it does not list ", escaped(parameters[i].name));
        else if (a->second.begin != s.begin || a->second.items != s.items.items())
          wrong[k] =
              cat("it has ", counted(a->second.items, "item"), " of ", escaped(parameters[i].name), " at ",
                  a->second.begin, ", param_shapes and the parts' sizes ", s.items.items(), " at ", s.begin);
      }
    for (std::size_t k = 0; k < files_.size(); k++) {
      if (!sharing.has(files_[k].rank)) continue;
      if (group(k, g).addresses && wrong[k].empty() && there[k] != std::ssize(*group(k, g).addresses))
        wrong[k] = cat("it lists ", counted(std::ssize(*group(k, g).addresses), "parameter"), ", ", there[k],
                       " are in the part");
      if (!wrong[k].empty())
        report(cat("param_slice_mappings of group ", g, " does not fit: ", wrong[k]), files_[k].path);
    }
  }

  // ZeRO 3: the parts of a rank are one vector.
  void lay_by_rank() {
    i64 each = 0;
    for (const ZeroGroup& g : *save_.model().groups)
      for (const ZeroParameter& p : g)
        each = checked_add(each, ceil_div(p.shape.items(), save_.ranks), kCounting);
    std::vector<FlatParts> flats(files_.size());
    for (std::size_t k = 0; k < files_.size(); k++) {
      bool complete = true;
      for (std::size_t g = 0; g < count_ && (complete &= items(k, g).has_value()); g++)
        flats[k].add(part_of(k, g), flats[k].end(), *items(k, g));
      if (complete && flats[k].end() != each)
        report(
            cat("the rank's parts have ", with_commas(flats[k].end()), " items, but the parameters take ",
                with_commas(each), " on each of ", counted(save_.ranks, "rank"), ": its parts are left out"),
            files_[k].path);
      if (!complete || flats[k].end() != each) flats[k] = {};
    }
    i64 begin = 0;
    std::vector<ZeroStretch> stretches;
    for (const ZeroGroup& g : *save_.model().groups)
      for (const ZeroParameter& p : g) {
        stretches.clear();
        for (std::size_t k = 0; k < files_.size(); k++)
          flats[k].cut(begin, chunk_part(p.shape.items(), save_.ranks, files_[k].rank), stretches);
        add_parameter(p, stretches,
                      stretches.empty() ? 0 : static_cast<std::size_t>(stretches[0].part) % count_);
        begin += ceil_div(p.shape.items(), save_.ranks);
      }
  }

  void add_parameter(const ZeroParameter& p, std::span<const ZeroStretch> stretches, std::size_t group) {
    const i64 layout = store_.add_layout(p.shape, stretches);
    if (to_.has(p.name))
      return report(cat("the parameter ", escaped(p.name), " is listed twice"), save_.models[0].path);
    to_.add(p.name, layout, weights_);
    trained_.push_back({&p, layout, group});
  }

  // The states that any rank has, in the order of the first.
  void add_states() {
    std::vector<std::string_view> names;
    for (const auto& f : files_)
      for (const Group& g : f.states.groups)
        for (const auto& s : g.states)
          if (std::ranges::find(names, s.name) == names.end()) names.push_back(s.name);
    for (std::string_view name : names) {
      if (names.size() > 64) break;  // optimizers have three or four; all of it is listed by its path then
      add_vectors(name);
      add_scalars(name);
    }
  }

  static i64 row_of(const Group& g, std::string_view name) {
    auto s = std::ranges::find(g.states, name, &ZeroOptimizerStates::State::name);
    return s == g.states.end() ? -1 : s->row;
  }

  // States of one number for each weight. A rank may have kept their padding.
  void add_vectors(std::string_view name) {
    std::vector<ZeroPlace> parts = places([&](const Group& g) { return row_of(g, name); });
    for (std::size_t k = 0; k < files_.size(); k++)
      for (std::size_t g = 0; g < count_; g++) {
        ZeroPlace& place = parts[part_of(k, g)];
        if (!place.is_there()) continue;
        const TorchTable& table = store_.table(place.file);
        if (table.dims(place.row).size() == 1 && table.strides(place.row).empty() && items(k, g)) {
          const i64 found = table.dims(place.row)[0], expected = *items(k, g);
          if (found >= expected && found <= checked_add(expected, group(k, g).padding, kCounting)) continue;
          report(cat("the state ", escaped(name), " of group ", g, " has ", with_commas(found),
                     " items, its weights ", with_commas(expected)),
                 files_[k].path);
        }
        place = {};
      }
    const i64 column = to_.add_column(cat("the state ", escaped(name)), parts);
    if (column < 0) return;
    i64 without = 0;
    for (const Trained& t : trained_) {
      bool any = save_.stage == 3;
      for (std::size_t k = 0; k < files_.size() && !any; k++) any = parts[part_of(k, t.group)].is_there();
      if (any)
        store_.add_tensor(cat("optimizer.state.", t.parameter->name, ".", name), t.layout, column, false);
      without += !any;
    }
    if (without > 0)
      store_.add_finding(
          {.code = Code::kBadShards,
           .message = cat("there is no state ", escaped(name), " of ", counted(without, "parameter"),
                          ", but of ", std::ssize(trained_) - without),
           .warning = true});
  }

  // States of one number for each group, such as the step: every rank has a copy.
  void add_scalars(std::string_view name) {
    std::vector<std::pair<i64, i64>> of_group(count_, {-1, -1});  // layout and column
    for (std::size_t g = 0; g < count_; g++) {
      std::vector<ZeroPlace> copies;
      for (std::size_t k = 0; k < files_.size(); k++)
        if (const i64 row = row_of(group(k, g), name);
            row >= 0 && store_.table(files_[k].file).dims(row).empty())
          copies.push_back({files_[k].file, row});
      const i64 count = std::ssize(copies);
      const i64 column = to_.add_column(cat("the state ", escaped(name)), std::move(copies));
      if (column >= 0) of_group[g] = {store_.add_copies_layout(Shape{}, count), column};
    }
    for (const Trained& t : trained_)
      if (auto [layout, column] = of_group[t.group]; column >= 0)
        store_.add_tensor(cat("optimizer.state.", t.parameter->name, ".", name), layout, column, false);
  }

  ZeroTensors& to_;
  const ZeroSave& save_;
  ZeroStore& store_;
  const std::vector<ZeroFile<ZeroOptimizerStates>>& files_;
  const std::size_t count_;  // of groups
  i64 weights_ = -1;
  std::vector<Trained> trained_;
};

}  // namespace

ZeroTensors::ZeroTensors(const ZeroSave& save, ZeroStore& store) : save_(save), store_(store) {
  for (std::size_t f = 0; f < store.files().size(); f++)
    used_.emplace_back(static_cast<std::size_t>(store.table(static_cast<i32>(f)).size()), false);
}

const ZeroGroup& ZeroTensors::keep(const ZeroGroup& group, const std::vector<std::string>& names) {
  ZeroGroup& kept = kept_groups_.emplace_back();
  for (std::size_t i = 0; i < group.size(); i++)
    kept.push_back({kept_names_.emplace_back(names[i]), group[i].shape});
  return kept;
}

void ZeroTensors::add(std::string_view name, i64 layout, i64 column) {
  by_name_[name] = {layout, column};
  store_.add_tensor(name, layout, column, true);
}

bool ZeroTensors::add_second(std::string_view name, std::string_view first) {
  auto it = by_name_.find(first);
  if (it == by_name_.end()) return false;
  const auto [layout, column] = it->second;
  add(name, layout, column);
  return true;
}

i64 ZeroTensors::add_column(std::string_view what, std::vector<ZeroPlace> places) {
  const ZeroPlace* first = nullptr;
  for (ZeroPlace& p : places) {
    if (!p.is_there()) continue;
    if (first == nullptr) first = &p;
    const DType expected = store_.table(first->file).dtype(first->row),
                found = store_.table(p.file).dtype(p.row);
    if (expected == found) {
      use(p);
      continue;
    }
    store_.add_finding({.code = Code::kBadShards,
                        .file = store_.files()[p.file].path,
                        .message = cat(what, " are ", dtype_name(found), ", but ", dtype_name(expected),
                                       " in ", store_.files()[first->file].path)});
    p = {};
  }
  return first == nullptr ? -1 : store_.add_column(std::move(places));
}

void add_trained(ZeroTensors& to) {
  if (!to.save().optimizers.empty() && to.save().model().groups) TrainedParameters(to).add();
}

}  // namespace mckpt::impl
