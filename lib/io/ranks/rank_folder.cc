// Sorts the files of ranks into groups, chooses the set of each that is the save, and joins it.
#include "io/ranks/rank_folder.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "core/base/error_code.h"
#include "core/base/text.h"
#include "io/file/folder.h"
#include "io/ranks/rank_group.h"
#include "io/saves/rank_saves.h"
#include "io/store/state_part.h"
#include "io/torch/files.h"
#include "io/torch/store.h"

namespace mckpt::impl {
namespace {

constexpr i64 kMostNamedFiles = 10;  // of one kind, in findings

// The files of one group of ranks, by the number of ranks in their names (-1: no number) and by rank.
struct Member {
  OpenedTorchFile* file;
  RankName name;
};
using RankSets = std::map<i64, std::map<i64, Member>>;

// The set that is the checkpoint where files of jobs of several sizes are in one folder: a complete one, of
// which most other groups have a complete one too, else the one with the most files. `model_world`: the
// number of the model's files, which its optimizer should have too; -1: not known.
i64 chosen_world(const RankSets& sets, i64 model_world, const std::map<std::string, RankSets>& groups) {
  auto is_complete = [](const RankSets& all, i64 world) {
    auto set = all.find(world);
    return set != all.end() && std::ssize(set->second) == world;
  };
  auto rank = [&](const RankSets::value_type& s) {
    const auto others =
        std::ranges::count_if(groups, [&](const auto& g) { return is_complete(g.second, s.first); });
    return std::tuple(s.first == model_world, is_complete(sets, s.first), others, std::ssize(s.second),
                      s.first);
  };
  return std::ranges::max_element(sets, {}, rank)->first;
}

// The groups that are a model, by their names: "model" alone if it is there, else all that are not state of
// the training.
std::vector<std::string> model_groups(const std::map<std::string, RankSets>& groups) {
  if (groups.contains("model")) return {"model"};
  std::vector<std::string> out;
  for (const auto& [name, sets] : groups)
    if (part_of_path(name) == StatePart::kModel) out.push_back(name);
  return out;
}

// The first rank from 0 on that has no file.
i64 first_missing(const std::map<i64, Member>& members) {
  i64 rank = 0;
  while (members.contains(rank)) rank++;
  return rank;
}

// The files of several ranks as one store. Each group ("model", "optim") is joined by itself.
class RankFolder {
 public:
  RankFolder(TorchStore& store, const Folder& folder, std::vector<OpenedTorchFile>& files,
             const RankFileNames& names)
      : store_(store), folder_(folder), names_(names), saves_(store) {
    for (OpenedTorchFile& o : files) {
      RankName n = names_.name_of ? names_.name_of(o.path) : *rank_name(o.path);
      if (auto [there, added] = groups_[n.group][n.world].emplace(n.rank, Member{&o, n}); !added)
        find(Code::kBadShards, o.path,
             cat("the file is of rank ", n.rank, ", and so is ", there->second.file->path));
    }
    models_ = model_groups(groups_);
  }

  // The model first, so that the other groups are compared with it.
  void add() {
    for (const auto& [name, sets] : groups_)
      if (is_model(name)) add_group(name, sets);
    for (const auto& [name, sets] : groups_)
      if (!is_model(name)) add_group(name, sets);
    saves_.compare_random_states(folder_);
    saves_.report();
    store_.set_ranks(ranks_);
  }

 private:
  bool is_model(const std::string& group) const { return std::ranges::find(models_, group) != models_.end(); }

  void find(Code code, const std::string& file, std::string message) {
    store_.add_finding({.code = code, .file = file, .message = std::move(message)});
  }

  // Names begin with the group, unless it is the only one, or the only model.
  std::string prefix_of(const std::string& group) const {
    return groups_.size() == 1 || (models_.size() == 1 && is_model(group)) ? "" : cat(group, ":");
  }

  void add_group(const std::string& name, const RankSets& sets) {
    const i64 world = chosen_world(sets, model_world_, groups_);
    const std::map<i64, Member>& members = sets.at(world);
    for (const auto& [other, files] : sets)
      if (other != world) leave_out(files, other);
    if (!is_model(name) && world >= 0 && model_world_ >= 0 && world != model_world_)
      find(Code::kBadShards, members.begin()->second.file->path,
           cat("the file is of one of ", world, " ranks, but the model's files are of ", model_world_,
               ": they are of two saves"));
    if (is_model(name)) model_world_ = world;

    RankGroup group(store_, folder_, saves_, prefix_of(name), is_model(name));
    bool read = true;
    for (const auto& [rank, member] : members) {
      read &= member.file->file.has_value();
      if (member.file->file) group.add(*member.file, member.name);
    }
    group.leave_out_others();
    const i64 there = std::ssize(members);
    const i64 expected = std::max({world, members.rbegin()->first + 1, group.least_ranks()});
    group.join(read && there == expected);
    ranks_ = std::max(ranks_, there);
    if (there == expected) return;
    const i64 lost = first_missing(members);
    const std::string missing = names_.path_of ? names_.path_of({name, world, lost})
                                               : name_of_rank(members.begin()->second.file->path, lost);
    store_.add_finding({.code = Code::kShardMissing,
                        .message = cat("files of ", name, " are missing: ", there, " of ", expected,
                                       " ranks are there; the first that is missing is ", missing),
                        .help = cat("copy ", missing, " of the same save into ", folder_.path())});
  }

  // Files of a job of another size, in the same folder.
  void leave_out(const std::map<i64, Member>& files, i64 world) {
    const std::string job =
        world < 0 ? "whose names have no number of ranks" : cat("of a job of ", world, " ranks");
    i64 named = 0;
    for (const auto& [rank, member] : files) {
      if (named++ == kMostNamedFiles) return find(Code::kBadShards, "", cat("and more files ", job));
      find(Code::kBadShards, member.file->path,
           cat("the file is of another save than the model here: one ", job, "; it is not used"));
    }
  }

  TorchStore& store_;
  const Folder& folder_;
  const RankFileNames& names_;
  RankSaves saves_;
  std::map<std::string, RankSets> groups_;
  std::vector<std::string> models_;
  i64 model_world_ = -1, ranks_ = 0;
};

}  // namespace

void add_rank_files(TorchStore& store, const Folder& folder, std::vector<OpenedTorchFile>& files,
                    const RankFileNames& names) {
  RankFolder(store, folder, files, names).add();
}

}  // namespace mckpt::impl
