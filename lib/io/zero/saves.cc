// Compares what the files of a folder say of the save that they are of. A folder into which a second save was
// written in part has files that fit together by their names and sizes, and so have copies of the file of
// another rank.
#include <algorithm>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/text.h"
#include "io/file/file.h"
#include "io/file/folder.h"
#include "io/saves/copied_files.h"
#include "io/saves/other_save.h"
#include "io/values/varying_items.h"
#include "io/zero/files.h"
#include "io/zero/store.h"

namespace mckpt::impl {
namespace {

constexpr const char* kSaveAgain = "copy or save the folder again as a whole, into an empty one";

// Compares facts of two files, and adds a finding for each that differs.
class SaveCheck {
 public:
  SaveCheck(ZeroStore& store, const std::string& first) : store_(store), first_(first) {}

  void of(const std::string& path, i64 rank) { path_ = path, rank_ = rank; }

  // -1 and "": the file does not say.
  void compare(std::string_view what, i64 expected, i64 found) {
    if (expected >= 0 && found >= 0 && expected != found) differ(what, cat(expected), cat(found));
  }
  void compare(std::string_view what, const std::string& expected, const std::string& found) {
    if (!expected.empty() && !found.empty() && expected != found) differ(what, expected, found);
  }
  void compare(std::string_view what, std::optional<double> expected, std::optional<double> found) {
    if (expected && found && *expected != *found) differ(what, cat(*expected), cat(*found));
  }
  void compare(const ZeroGroup& expected, const ZeroGroup& found) {
    auto [e, f] = std::ranges::mismatch(expected, found);
    auto text = [](const ZeroGroup& group, auto at) {
      return at == group.end() ? cat(counted(std::ssize(group), "parameter"))
                               : cat(escaped(at->name), " ", to_string(at->shape));
    };
    if (e == expected.end() && f == found.end()) return;
    add(Code::kBadShards, cat("the parameters are not those of ", first_, ": expected ", text(expected, e),
                              ", found ", text(found, f)));
  }

  void add(Code code, std::string message) {
    store_.add_finding({.code = code,
                        .file = path_,
                        .message = std::move(message),
                        .help = kSaveAgain,
                        .rank = static_cast<i32>(rank_)});
  }

 private:
  void differ(std::string_view what, const std::string& expected, const std::string& found) {
    store_.add_finding(other_save(path_, first_, {unlike_value(what, escaped(found), escaped(expected))},
                                  kSaveAgain, rank_));
  }

  ZeroStore& store_;
  std::string first_, path_;
  i64 rank_ = -1;
};

// Compares the facts that the files of all ranks say alike.
void compare_saves(const ZeroModelStates& a, const ZeroModelStates& b, SaveCheck& check) {
  check.compare("dp_world_size", a.ranks, b.ranks);
  check.compare("mp_world_size", a.model_ranks, b.model_ranks);
  check.compare("global_steps", a.steps, b.steps);
  check.compare("ds_version", a.version, b.version);
}

void compare_models(const ZeroModelStates& a, const std::string& first, const ZeroModelStates& b,
                    SaveCheck& check) {
  compare_saves(a, b, check);
  if (!a.groups || !b.groups) return;
  if (a.groups->size() != b.groups->size())
    return check.add(Code::kBadShards, cat("the file has ", counted(std::ssize(*b.groups), "group"),
                                           " of parameters, not ", a.groups->size()));
  for (std::size_t g = 0; g < a.groups->size(); g++) check.compare((*a.groups)[g], (*b.groups)[g]);
  check.compare(a.frozen, b.frozen);
  if (a.shared.empty() && !b.shared.empty())
    check.add(
        Code::kBadShards,
        cat("the file has shared_params, which DeepSpeed writes in the file of rank 0: the two changed places, or ",
            first, " is a copy of another rank's"));
}

// The tensors with the weights of one file, in an order that is the same for all ranks.
struct Weights {
  std::vector<ZeroPlace> all{};
  // Those in which each rank has other items than all others. Experts are left out: they may begin as copies.
  std::vector<ZeroPlace> own{};
};

Weights weights_of(const ZeroFile<ZeroOptimizerStates>& of, i64 ranks) {
  Weights out;
  for (const ZeroOptimizerStates::Group& g : of.states.groups) {
    out.all.push_back({of.file, g.part});
    if (g.ranks >= ranks) out.own.push_back(out.all.back());
  }
  return out;
}

// With ZeRO 3, the rank's fragments of parameters that were not trained.
Weights weights_of(const ZeroFile<ZeroModelStates>& of, const ZeroStore& store) {
  const ZeroRows rows(store.table(of.file));
  Weights out;
  for (const ZeroParameter& p : of.states.frozen)
    out.all.push_back({of.file, rows.row(cat(kZeroFragments, p.name))});
  out.own = out.all;
  return out;
}

// The file of a rank, as find_copies() compares it.
struct RankFile {
  std::string path;
  i64 rank;
  Weights weights;
};

// Finds files that were copied to the name of another rank, by the stored sums of their weights: their sizes
// fit.
class Copies {
 public:
  Copies(const Folder& folder, const ZeroStore& store, SaveCheck& check)
      : folder_(folder), store_(store), check_(check) {}

  void add(RankFile file) {
    if (std::ranges::all_of(file.weights.all, &ZeroPlace::is_there)) files_.push_back(std::move(file));
  }

  void find() {
    std::vector<i64> pieces;
    for (const RankFile& f : files_) pieces.push_back(std::ssize(f.weights.all));
    auto sum = [&](i64 f, i64 piece) { return sum_of(files_[f].weights.all[piece]); };
    for (const std::vector<i64>& alike : files_with_equal_sums(pieces, sum))
      for (std::size_t i = 1; i < alike.size(); i++)
        if (varies(files_[alike[i]])) add_finding(files_[alike[i]], files_[alike[0]]);
  }

 private:
  std::optional<PieceSum> sum_of(const ZeroPlace& place) const {
    const i64 bytes = store_.table(place.file).extent_bytes(place.row);
    const std::optional<u32> sum = bytes > 0 ? store_.checksum(place) : 0;
    return sum ? std::optional(PieceSum{bytes, *sum}) : std::nullopt;
  }

  // Whether the file has weights of its own that are not constants.
  bool varies(const RankFile& of) const {
    const InputFile file = folder_.open_file(of.path);
    return std::ranges::any_of(of.weights.own, [&](const ZeroPlace& p) {
      const TorchTable& table = store_.table(p.file);
      return items_vary(file, table.offset(p.row), table.extent_bytes(p.row),
                        std::max<i64>(dtype_bytes(table.dtype(p.row), 1), 1));
    });
  }

  void add_finding(const RankFile& copy, const RankFile& first) {
    check_.of(copy.path, copy.rank);
    check_.add(Code::kBadShards, copied_file_message(first.path));
  }

  const Folder& folder_;
  const ZeroStore& store_;
  SaveCheck& check_;
  std::vector<RankFile> files_;
};

void find_copies(const ZeroSave& save, const Folder& folder, const ZeroStore& store, SaveCheck& check) {
  Copies optimizers(folder, store, check), models(folder, store, check);
  for (const auto& o : save.optimizers) optimizers.add({o.path, o.rank, weights_of(o, save.ranks)});
  if (save.stage == 3)
    for (const auto& m : save.models) models.add({m.path, m.rank, weights_of(m, store)});
  optimizers.find(), models.find();
}

// In ZeRO 1 and 2, where the parameters of each group are in the rank's part.
std::vector<std::tuple<std::size_t, std::string_view, i64, i64>> addresses_of(
    const ZeroOptimizerStates& states) {
  std::vector<std::tuple<std::size_t, std::string_view, i64, i64>> out;
  for (std::size_t g = 0; g < states.groups.size(); g++)
    if (states.groups[g].addresses)
      for (const auto& [name, a] : *states.groups[g].addresses) out.emplace_back(g, name, a.begin, a.items);
  std::ranges::sort(out);
  return out;
}

}  // namespace

bool says_order(const ZeroSave& save) {
  if (save.stage == 0 || save.ranks < 2) return true;
  const bool models =
      save.stage < 3 || std::ranges::all_of(save.models, [](const auto& m) { return m.says_rank; });
  if (models && std::ranges::all_of(save.optimizers, [](const auto& o) { return o.says_rank; })) return true;
  std::set<std::vector<std::tuple<std::size_t, std::string_view, i64, i64>>> addresses;
  for (const auto& o : save.optimizers) addresses.insert(addresses_of(o.states));
  return save.stage < 3 && addresses.size() == save.optimizers.size();
}

void check_one_save(const ZeroSave& save, const Folder& folder, ZeroStore& store) {
  const ZeroModelStates& model = save.model();
  SaveCheck models(store, save.models[0].path);
  for (const auto& m : save.models) {
    models.of(m.path, m.rank);
    if (&m != &save.models[0]) compare_models(model, save.models[0].path, m.states, models);
  }
  if (save.optimizers.empty()) return;
  const ZeroOptimizerStates& first = save.optimizers[0].states;
  SaveCheck check(store, save.optimizers[0].path);
  if (save.stage > 0) find_copies(save, folder, store, check);
  check.of(save.models[0].path, save.models[0].rank);
  check.compare("the number of ranks", save.ranks, model.ranks);
  check.compare("ds_version", first.version, model.version);
  if (model.stage > 0) check.compare("the stage of ZeRO", save.stage, model.stage);
  for (const auto& o : save.optimizers) {
    check.of(o.path, o.rank);
    check.compare("ds_version", first.version, o.states.version);
    check.compare("the optimizer's step", first.step, o.states.step);
  }
}

void check_other_rank(const ZeroSave& first, const ZeroSave& other, ZeroStore& store) {
  SaveCheck check(store, first.models[0].path);
  check.of(other.models[0].path, other.models[0].rank);
  compare_saves(first.model(), other.model(), check);
  check.compare("the stage of ZeRO", first.stage, other.stage);
  if (first.optimizers.empty() || other.optimizers.empty()) return;
  SaveCheck optimizer(store, first.optimizers[0].path);
  optimizer.of(other.optimizers[0].path, other.optimizers[0].rank);
  optimizer.compare("the number of ranks", first.ranks, other.ranks);
  optimizer.compare("the optimizer's step", first.optimizers[0].states.step, other.optimizers[0].states.step);
}

}  // namespace mckpt::impl
