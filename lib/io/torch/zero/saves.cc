// Compares what the files of a folder say of the save that they are of. A folder into which a second save was
// written in part has files that fit together by their names and sizes.
#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/text.h"
#include "io/file/crc32.h"
#include "io/torch/zero/files.h"
#include "io/torch/zero/store.h"

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
    add(Code::kMixedSaves, cat("the file is of another save than ", first_, ": ", what, " ", escaped(found),
                               ", and ", escaped(expected), " there"));
  }

  ZeroStore& store_;
  std::string first_, path_;
  i64 rank_ = -1;
};

void compare_models(const ZeroModelStates& a, const ZeroModelStates& b, SaveCheck& check) {
  check.compare("dp_world_size", a.ranks, b.ranks);
  check.compare("global_steps", a.steps, b.steps);
  check.compare("ds_version", a.version, b.version);
  if (!a.groups || !b.groups) return;
  if (a.groups->size() != b.groups->size())
    return check.add(Code::kBadShards,
                     cat("the file has ", b.groups->size(), " groups of parameters, not ", a.groups->size()));
  for (std::size_t g = 0; g < a.groups->size(); g++) check.compare((*a.groups)[g], (*b.groups)[g]);
  check.compare(a.frozen, b.frozen);
}

u32 crc32_of_zeros(i64 bytes) {
  constexpr u8 kZero[1] = {};
  u32 sum = 0, step = crc32(0, kZero);
  for (i64 length = 1; bytes > 0; bytes >>= 1, step = crc32_join(step, step, length), length *= 2)
    if (bytes & 1) sum = crc32_join(sum, step, length);
  return sum;
}

// The sums of a rank's parts, group by group: those of two ranks differ. Nothing if there are no sums, if each rank has
// zeros alone, as padding, or if not all ranks share a vector of weights.
std::vector<std::pair<i64, u32>> sums_of_parts(const ZeroStore& store, const ZeroFile<ZeroOptimizerStates>& of,
                                               i64 ranks) {
  std::vector<std::pair<i64, u32>> out;
  bool own = false;
  for (const ZeroOptimizerStates::Group& g : of.states.groups) {
    if (g.part < 0) return {};
    const i64 bytes = store.table(of.file).extent_bytes(g.part);
    std::optional<u32> sum;
    if (bytes > 0) sum = store.checksum({of.file, g.part});
    if (bytes > 0 && !sum) return {};
    out.emplace_back(bytes, sum.value_or(0));
    own |= sum && g.ranks >= ranks && *sum != crc32_of_zeros(bytes);
  }
  return own ? out : std::vector<std::pair<i64, u32>>{};
}

// A file that was copied to the name of another rank fits by its sizes.
void find_copies(const ZeroSave& save, const ZeroStore& store, SaveCheck& check) {
  std::map<std::vector<std::pair<i64, u32>>, std::string> paths;
  for (const auto& o : save.optimizers) {
    const std::vector<std::pair<i64, u32>> sums = sums_of_parts(store, o, save.ranks);
    if (sums.empty()) continue;
    auto [first, is_new] = paths.emplace(sums, o.path);
    if (is_new) continue;
    check.of(o.path, o.rank);
    check.add(Code::kBadShards, cat("the file has the same weights as ", first->second,
                                    ", and each rank has others: one of the two is a copy under another rank's name"));
  }
}

}  // namespace

void check_one_save(const ZeroSave& save, ZeroStore& store) {
  const ZeroModelStates& model = save.model();
  SaveCheck models(store, save.models[0].path);
  for (const auto& m : save.models) {
    models.of(m.path, m.rank);
    if (&m != &save.models[0]) compare_models(model, m.states, models);
  }
  if (save.optimizers.empty()) return;
  const ZeroOptimizerStates& first = save.optimizers[0].states;
  SaveCheck check(store, save.optimizers[0].path);
  if (save.stage > 0) find_copies(save, store, check);
  check.of(save.models[0].path, save.models[0].rank);
  check.compare("a number of ranks of", save.ranks, model.ranks);
  check.compare("ds_version", first.version, model.version);
  if (model.stage > 0) check.compare("ZeRO", save.stage, model.stage);
  for (const auto& o : save.optimizers) {
    check.of(o.path, o.rank);
    check.compare("ds_version", first.version, o.states.version);
    check.compare("the optimizer's step is", first.step, o.states.step);
  }
}

}  // namespace mckpt::impl
