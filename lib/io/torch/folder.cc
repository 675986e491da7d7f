// A folder of several torch files, as one store. Three kinds:
//
//   model_world_size_4_rank_0.pt ...    one file for each rank: the pieces that ranks have of a tensor become
//                                       one tensor (io/torch/rank_group.h); names in the files of other
//                                       groups than the model's begin with the group, "optim:"
//   pytorch_model-00001-of-00002.bin    shards of one state dict, each with tensors of its own
//   model.pt, optimizer.pt              independent files; tensors are named FILE:NAME
#include <algorithm>
#include <map>
#include <tuple>

#include "core/base/error_code.h"
#include "core/base/text.h"
#include "io/file/folder.h"
#include "io/pickle/render.h"
#include "io/safetensors/config_facts.h"
#include "io/store/open/torch_names.h"
#include "io/store/state_part.h"
#include "io/torch/files.h"
#include "io/torch/lone_file.h"
#include "io/torch/rank_group.h"
#include "io/torch/store.h"

namespace mckpt::impl {
namespace {

constexpr i64 kMostNamedFiles = 10;  // of one kind, in findings

// The files of one group of ranks, by the number of ranks in their names (-1: no number) and by rank.
using RankSets = std::map<i64, std::map<i64, OpenedTorchFile*>>;

// The set that is the checkpoint where files of jobs of several sizes are in one folder: a complete one, of
// which most other groups have a complete one too, else the one with the most files. `model_world`: of the
// model's files, which those of its optimizer should have; -1: not known.
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

// The groups that are a model, by their names: "model" alone if it is there, else all that are no state of
// the training.
std::vector<std::string> model_groups(const std::map<std::string, RankSets>& groups) {
  if (groups.contains("model")) return {"model"};
  std::vector<std::string> out;
  for (const auto& [name, sets] : groups)
    if (part_of_path(name) == StatePart::kModel) out.push_back(name);
  return out;
}

// The first rank from 0 on that has no file.
i64 first_missing(const std::map<i64, OpenedTorchFile*>& members) {
  i64 rank = 0;
  while (members.contains(rank)) rank++;
  return rank;
}

// The files of several ranks as one store. Each group ("model", "optim") is joined by itself.
class RankFolder {
 public:
  RankFolder(TorchStore& store, const Folder& folder, std::vector<OpenedTorchFile>& files)
      : store_(store), folder_(folder), saves_(store) {
    for (OpenedTorchFile& o : files) {
      RankName n = *rank_name(o.path);
      if (auto [there, added] = groups_[n.group][n.world].emplace(n.rank, &o); !added)
        find(Code::kBadShards, o.path,
             cat("the file is of rank ", n.rank, ", and so is ", there->second->path));
    }
    models_ = model_groups(groups_);
  }

  // The model first, so that the other groups are compared with it.
  void add() {
    for (const auto& [name, sets] : groups_)
      if (is_model(name)) add_group(name, sets);
    for (const auto& [name, sets] : groups_)
      if (!is_model(name)) add_group(name, sets);
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
    const std::map<i64, OpenedTorchFile*>& members = sets.at(world);
    for (const auto& [other, files] : sets)
      if (other != world) leave_out(files, other);
    if (!is_model(name) && world >= 0 && model_world_ >= 0 && world != model_world_)
      find(Code::kBadShards, members.begin()->second->path,
           cat("the file is of one of ", world, " ranks, but the model's files are of ", model_world_,
               ": they are of two saves"));
    if (is_model(name)) model_world_ = world;

    RankGroup group(store_, folder_, saves_, prefix_of(name), is_model(name));
    bool read = true;
    for (const auto& [rank, o] : members) {
      read &= o->file.has_value();
      if (o->file) group.add(*o, *rank_name(o->path));
    }
    group.leave_out_others();
    const i64 there = std::ssize(members);
    const i64 expected = std::max({world, members.rbegin()->first + 1, group.least_ranks()});
    group.join(read && there == expected);
    ranks_ = std::max(ranks_, there);
    if (there == expected) return;
    const std::string missing = name_of_rank(members.begin()->second->path, first_missing(members));
    store_.add_finding({.code = Code::kShardMissing,
                        .message = cat("files of ", name, " are missing: ", there, " of ", expected,
                                       " ranks are there; the first that is missing is ", missing),
                        .help = cat("copy ", missing, " of the same save into ", folder_.path())});
  }

  // Files of a job of another size, in the same folder.
  void leave_out(const std::map<i64, OpenedTorchFile*>& files, i64 world) {
    const std::string job =
        world < 0 ? "whose names have no number of ranks" : cat("of a job of ", world, " ranks");
    i64 named = 0;
    for (const auto& [rank, o] : files) {
      if (named++ == kMostNamedFiles) return find(Code::kBadShards, "", cat("and more files ", job));
      find(Code::kBadShards, o->path,
           cat("the file is of another save than the model here: one ", job, "; it is not used"));
    }
  }

  TorchStore& store_;
  const Folder& folder_;
  RankSaves saves_;
  std::map<std::string, RankSets> groups_;
  std::vector<std::string> models_;
  i64 model_world_ = -1, ranks_ = 0;
};

// A tensor in two shards, and missing shards by the "-of-N" of the names, are findings.
void add_shards(TorchStore& store, std::vector<OpenedTorchFile>& files) {
  std::map<std::string, std::string, std::less<>> file_of;
  for (OpenedTorchFile& o : files) {
    if (!o.file) continue;
    i32 file = store.add_file(o.path, o.bytes, std::move(*o.file));
    add_lone_file(store, file);
    for (i64 row = 0; row < store.table(file).size(); row++) {
      auto [it, is_new] = file_of.try_emplace(std::string(store.table(file).name(row)), o.path);
      if (!is_new)
        store.add_finding({.code = Code::kIndexMismatch,
                           .tensor = it->first,
                           .file = o.path,
                           .message = cat("the tensor is in ", it->second, " as well")});
    }
  }
  // Each set by the part of the names that its files share.
  std::map<std::pair<std::string, i64>, i64> sets;
  for (const OpenedTorchFile& o : files)
    sets[{
        o.path.substr(0, o.path.rfind("-of-")).substr(0, o.path.find_last_of('-', o.path.rfind("-of-") - 1)),
        shard_count(o.path)}]++;
  for (const auto& [set, there] : sets)
    if (there != set.second)
      store.add_finding({.code = Code::kShardMissing,
                         .message = cat("shards of ", escaped(set.first), " are missing: ", there, " of ",
                                        set.second, " are there")});
}

// Files that have nothing to do with each other.
void add_separate(TorchStore& store, std::vector<OpenedTorchFile>& files) {
  for (OpenedTorchFile& o : files) {
    if (!o.file) continue;
    std::string prefix = o.path + ":";
    i32 file = store.add_file(o.path, o.bytes, std::move(*o.file), prefix);
    add_lone_file(store, file, prefix);
  }
}

}  // namespace

std::unique_ptr<Store> open_torch_folder(const std::string& path, const OpenOptions& opening) {
  Folder folder(path, opening);
  std::vector<std::string> names, ranked, shards;
  for (const FolderEntry& e : folder.entries()) {
    if (e.folder || !has_torch_suffix(e.name)) continue;
    names.push_back(e.name);
    if (rank_name(e.name)) ranked.push_back(e.name);
    if (shard_count(e.name) > 0) shards.push_back(e.name);
  }
  // Beside the files of ranks or shards there may be others, which are not the model; those of the trainer
  // are expected there.
  std::vector<std::string>& chosen = !ranked.empty() ? ranked : !shards.empty() ? shards : names;
  auto store = std::make_unique<TorchStore>(path,
                                            !ranked.empty()   ? Format::kTorchRanks
                                            : !shards.empty() ? Format::kTorchShards
                                                              : Format::kTorchFiles,
                                            opening);
  for (const std::string& n : names)
    if (std::find(chosen.begin(), chosen.end(), n) == chosen.end() && part_of_path(n) == StatePart::kModel)
      store->add_finding({.code = Code::kUnusedFile,
                          .file = n,
                          .message = "the file is not of a rank or a shard, so it is not part of the model",
                          .warning = true});
  std::vector<OpenedTorchFile> files = open_torch_files(folder, chosen);
  for (const OpenedTorchFile& o : files)
    if (o.problem) store->add_finding(*o.problem);
  add_config_facts(folder, *store, [&](Finding f) { store->add_finding(std::move(f)); });
  if (!ranked.empty())
    RankFolder(*store, folder, files).add();
  else if (!shards.empty())
    add_shards(*store, files);
  else
    add_separate(*store, files);
  return store;
}

}  // namespace mckpt::impl
