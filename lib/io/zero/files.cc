// Chooses the files by their names and reads them. A folder of another kind is recognised by names alone, so
// it is refused before anything is opened.
#include "io/zero/files.h"

#include <algorithm>
#include <cstring>
#include <tuple>

#include "core/base/error.h"
#include "io/file/file.h"
#include "io/file/folder.h"
#include "io/file/parallel.h"
#include "io/store/names/zero_names.h"
#include "io/torch/files.h"
#include "io/zero/store.h"

namespace mckpt::impl {
namespace {

// Names by rank; -1 is the file of all ranks. The names of experts, by layer and expert.
struct Names {
  std::map<i64, std::string> models, optimizers, expert_optimizers;
  std::map<std::pair<i64, i64>, std::string> experts;
  // One of them; of experts there need be no other.
  std::string any() const {
    for (const auto* of : {&models, &optimizers})
      if (!of->empty()) return of->begin()->second;
    return "";
  }
};

constexpr const char* kByItself = "mckpt reads each file by itself; save a whole model in the training run";

[[noreturn]] void refuse(const Folder& folder, std::string what, std::string_view found, const char* help) {
  throw Error(Code::kUnsupportedTorchFile, std::move(what))
      .file(folder.path())
      .found(escaped(found))
      .help(help);
}

// `of`: what the key is, "rank 0".
template <typename Key>
void add_name(std::map<Key, std::string>& names, const Key& key, const std::string& of,
              const std::string& name, ZeroStore& store) {
  auto [first, is_new] = names.emplace(key, name);
  if (!is_new)
    store.add_finding({.code = Code::kBadShards,
                       .file = name,
                       .message = cat("the file is of ", of, ", and so is ", first->second)});
}

// By tensor-parallel rank.
std::map<i64, Names> names_in(const Folder& folder, ZeroStore& store) {
  std::map<i64, Names> by_rank;
  for (const FolderEntry& e : folder.entries()) {
    if (e.folder && e.name == "zero")
      refuse(folder, "this is a universal checkpoint, with a folder for each parameter", e.name,
             "name the folder of the save that it was made from");
    std::optional<ZeroName> name = e.folder ? std::nullopt : zero_name(e.name);
    if (!name) continue;
    if (name->kind == ZeroName::Kind::kPipelineLayer)
      refuse(folder, "the checkpoint is of a pipeline, which names tensors by the number of their layer",
             e.name, kByItself);
    const bool of_expert =
        name->kind == ZeroName::Kind::kExpert || name->kind == ZeroName::Kind::kExpertOptimizer;
    if (name->model_rank > 0 && of_expert)
      refuse(folder, "the checkpoint has experts of several model-parallel ranks, which mckpt does not join",
             e.name, kByItself);
    Names& names = by_rank[name->model_rank];
    const std::string rank = cat("rank ", name->rank);
    if (name->kind == ZeroName::Kind::kExpert)
      add_name(names.experts, {name->layer, name->expert}, cat("expert ", name->expert), e.name, store);
    else if (name->kind == ZeroName::Kind::kExpertOptimizer)
      add_name(names.expert_optimizers, name->rank, rank, e.name, store);
    else
      add_name(name->kind == ZeroName::Kind::kModel ? names.models : names.optimizers, name->rank, rank,
               e.name, store);
  }
  return by_rank;
}

// The number of steps, which Adam keeps in a tensor of one item.
std::optional<double> step_in(const Folder& folder, const std::string& path, const TorchTable& table,
                              i64 row) {
  u8 bytes[8] = {};
  const DType dtype = table.dtype(row);
  folder.open_file(path).read(table.offset(row), {bytes, static_cast<std::size_t>(dtype_bytes(dtype, 1))});
  auto as = [&](auto value) {
    std::memcpy(&value, bytes, sizeof value);
    return static_cast<double>(value);
  };
  if (dtype == DType::kF32) return as(float{});
  if (dtype == DType::kF64) return as(double{});
  if (dtype == DType::kI64) return as(i64{});
  if (dtype == DType::kI32) return as(i32{});
  return std::nullopt;
}

class SaveReader {
 public:
  SaveReader(const Folder& folder, ZeroStore& store, i64 model_rank, Names names)
      : folder_(folder), store_(store), names_(std::move(names)) {
    save_.model_rank = model_rank;
  }

  // Without models if none is there and it is not the first tensor-parallel rank.
  ZeroSave read(bool first) {
    read_all(names_.optimizers, save_.optimizers, [](const TorchTable& t) { return read_zero_optimizer(t); });
    if (!save_.optimizers.empty()) {
      save_.stage = save_.optimizers[0].states.stage;
      save_.ranks = save_.optimizers[0].states.ranks;
    }
    leave_out_other_saves();
    choose_models();
    read_all(names_.models, save_.models, [](const TorchTable& t) { return read_zero_model(t); });
    if (save_.models.empty() && !first) {
      store_.add_finding({.code = Code::kShardMissing,
                          .message = cat("the file of the model of tensor-parallel rank ", save_.model_rank,
                                         ", which has names and shapes, is missing: its part is left out"),
                          .help = cat("copy ", model_name(), " again")});
      return std::move(save_);
    }
    if (save_.models.empty()) throw_no_model();
    read_plain(names_.experts, save_.experts);
    read_plain(names_.expert_optimizers, save_.others);
    if (save_.optimizers.empty()) {
      save_.stage = save_.model().groups ? std::max<i64>(save_.model().stage, 1) : 0;
      save_.ranks = std::max<i64>(save_.model().ranks, 1);
    }
    add_to_store();
    find_missing();
    return std::move(save_);
  }

 private:
  using Group = ZeroOptimizerStates::Group;

  // Whether the file says by the name under which it was saved which one of the save it is. Adds a finding if
  // it is another one than its name says now.
  bool check_name(const OpenedTorchFile& file) {
    const std::optional<ZeroName> saved = zero_name(saved_as(file)), now = zero_name(file.path);
    if (!saved || !now || saved->kind != now->kind) return false;
    auto which = [](const ZeroName& n) { return std::tuple(n.rank, n.model_rank, n.layer, n.expert); };
    if (which(*saved) != which(*now)) store_.add_finding(moved_file(file, now->rank));
    return true;
  }

  // Files that cannot be read become findings.
  template <typename States, typename Read>
  void read_all(const std::map<i64, std::string>& names, std::vector<ZeroFile<States>>& out, Read&& read) {
    std::vector<std::string> paths;
    std::vector<i64> ranks;
    for (const auto& [rank, name] : names) paths.push_back(name), ranks.push_back(rank);
    std::vector<OpenedTorchFile> opened = open_torch_files(folder_, paths);
    for (std::size_t i = 0; i < opened.size(); i++) try {
        if (opened[i].problem) {
          store_.add_finding(*opened[i].problem);
          continue;
        }
        out.push_back({ranks[i], -1, paths[i], read(opened[i].file->table), check_name(opened[i])});
        files_.emplace(paths[i], std::move(opened[i]));
      } catch (Error& e) {
        e.default_file(paths[i]);
        if (e.code() == Code::kUnsupportedTorchFile) throw;
        store_.add_finding(to_finding(e));
      }
  }

  template <typename Map>
  void read_plain(const Map& names, std::vector<ZeroPlainFile>& out) {
    std::vector<std::string> paths;
    for (const auto& [key, name] : names) paths.push_back(name);
    std::vector<OpenedTorchFile> opened = open_torch_files(folder_, paths);
    for (std::size_t i = 0; i < opened.size(); i++) {
      if (opened[i].problem) {
        store_.add_finding(*opened[i].problem);
        continue;
      }
      check_name(opened[i]);
      out.push_back({.path = paths[i]});
      files_.emplace(paths[i], std::move(opened[i]));
    }
  }

  // Ranks of a save with more ranks, or of another stage, have other parts.
  void leave_out_other_saves() {
    if (save_.optimizers.empty()) return;
    const std::string first = save_.optimizers[0].path;
    const std::size_t groups = save_.optimizers[0].states.groups.size();
    std::erase_if(save_.optimizers, [&](const auto& o) {
      const ZeroOptimizerStates& s = o.states;
      std::string wrong;
      if (s.ranks != save_.ranks)
        wrong =
            cat("the file is of a save by ", counted(s.ranks, "rank"), ", but ", first, " by ", save_.ranks);
      else if (s.stage != save_.stage)
        wrong = cat("the file is of ZeRO ", s.stage, ", but ", first, " of ZeRO ", save_.stage);
      else if (o.rank >= save_.ranks)
        wrong = cat("the file is of rank ", o.rank, ", but ", first, " is of a save by ",
                    counted(save_.ranks, "rank"));
      else if (s.groups.size() != groups)
        wrong = cat("the file has ", counted(std::ssize(s.groups), "group"), " of parameters, but ", first,
                    " has ", groups);
      else if (!std::ranges::equal(s.groups, save_.optimizers[0].states.groups, {}, &Group::ranks,
                                   &Group::ranks))
        wrong = cat("its groups of parameters are cut over other numbers of ranks than in ", first);
      if (wrong.empty()) return false;
      store_.add_finding({.code = Code::kMixedSaves,
                          .file = o.path,
                          .message = cat(wrong, ": it is not read"),
                          .help = "copy or save the folder again as a whole, into an empty one",
                          .rank = static_cast<i32>(o.rank)});
      return true;
    });
  }

  // ZeRO 3 has a file of the model for each rank, the others have one for all.
  void choose_models() {
    const bool by_rank = save_.optimizers.empty() ? !names_.models.contains(-1) : save_.stage == 3;
    std::erase_if(names_.models, [&](const auto& entry) {
      const bool fits = by_rank == (entry.first >= 0) && (save_.ranks == 0 || entry.first < save_.ranks);
      if (!fits)
        store_.add_finding({.code = Code::kMixedSaves,
                            .file = entry.second,
                            .message = cat("the file is not of this save of ZeRO ", save_.stage, " by ",
                                           counted(save_.ranks, "rank"), ": it is not read"),
                            .help = "copy or save the folder again as a whole, into an empty one"});
      return !fits;
    });
  }

  [[noreturn]] void throw_no_model() const {
    for (const Finding& f : store_.findings())
      for (const auto& [rank, name] : names_.models)
        if (f.file == name && !f.warning) throw Error(f.code, f.message).file(folder_.inside(name));
    throw Error(Code::kShardMissing, "the file of the model, which has the names and shapes, is missing")
        .file(folder_.path())
        .expected(model_name());
  }

  // "mp_rank_00"
  std::string of_model_rank() const {
    return cat("mp_rank_", save_.model_rank < 10 ? "0" : "", save_.model_rank);
  }
  std::string model_name() const {
    return cat(save_.stage == 3 ? "zero_pp_rank_0_" : "", of_model_rank(), "_model_states.pt");
  }

  i32 add_to_store(const std::string& path, i64 rank, bool main = false) {
    OpenedTorchFile& o = files_.at(path);
    if (rank >= 0) rank = rank * std::max<i64>(save_.model().model_ranks, 1) + save_.model_rank;
    return store_.add_file(o.path, o.bytes, std::move(*o.file), main ? "" : cat(path, ":"),
                           static_cast<i32>(rank));
  }

  void add_to_store() {
    save_.first_file = static_cast<i32>(store_.files().size());
    for (auto& m : save_.models)
      m.file = add_to_store(m.path, m.rank, save_.first_file == 0 && &m == &save_.models[0]);
    for (auto& o : save_.optimizers) o.file = add_to_store(o.path, o.rank);
    for (auto* plain : {&save_.experts, &save_.others})
      for (ZeroPlainFile& f : *plain) f.file = add_to_store(f.path, -1);
    parallel_for(std::ssize(save_.optimizers), default_threads(), [&](int, i64 i) {
      auto& o = save_.optimizers[i];
      if (o.states.step_row >= 0)
        o.states.step = step_in(folder_, o.path, store_.table(o.file), o.states.step_row);
    });
  }

  void find_missing() {
    find_missing_experts();
    if (save_.stage == 0)
      return add_missing(names_.expert_optimizers,
                         {"expp_rank_", "_optim_states.pt", save_.model().expert_ranks},
                         "the states of the optimizer of experts");
    add_missing(names_.optimizers, {"zero_pp_rank_", "_optim_states.pt", save_.ranks},
                "the float32 weights and the states of the optimizer");
    if (save_.stage == 3)
      add_missing(names_.models, {"zero_pp_rank_", "_model_states.pt", save_.ranks},
                  "parts of frozen parameters");
  }

  // A file for each expert of each layer that the model's file counts.
  void find_missing_experts() {
    const std::vector<i64>& counts = save_.model().experts;
    bool by_layer = names_.experts.empty() || names_.experts.begin()->first.first >= 0;
    if (names_.experts.empty() || !by_layer) return;
    i64 all = 0;
    for (i64 experts : counts) all = checked_add(all, std::max<i64>(experts, 0), "the number of experts");
    i64 there = std::ranges::count_if(names_.experts, [&](const auto& entry) {
      auto [layer, expert] = entry.first;
      return layer < std::ssize(counts) && expert < counts[layer];
    });
    if (there == all) return;
    std::vector<std::string> missing;
    for (i64 layer = 0; layer < std::ssize(counts); layer++)
      for (i64 expert = 0; expert < counts[layer] && missing.size() < 4; expert++)
        if (!names_.experts.contains({layer, expert}))
          missing.push_back(cat("layer_", layer, "_expert_", expert, "_mp_rank_00_model_states.pt"));
    store_.add_finding(
        {.code = Code::kShardMissing,
         .message = cat("files of experts are missing: ", there, " of ", all,
                        " are there; missing: ", listed(missing), all - there > 4 ? " and others" : ""),
         .help = "copy them again: they have the weights with which training computes"});
  }

  // The files of one kind, one for each rank.
  struct RankFiles {
    std::string_view front, suffix;
    i64 ranks;
  };

  void add_missing(const std::map<i64, std::string>& names, const RankFiles& files, std::string_view what) {
    std::string prefix = names.empty() ? "" : names.begin()->second;
    prefix.resize(std::min(prefix.size(), prefix.find(files.front)));
    std::vector<std::string> missing;
    i64 count = 0;
    for (i64 r = 0; r < files.ranks; r++)
      if (!names.contains(r) && count++ < 4)
        missing.push_back(cat(prefix, files.front, r, "_", of_model_rank(), files.suffix));
    if (count == 0) return;
    store_.add_finding(
        {.code = Code::kShardMissing,
         .message = cat("files of ranks are missing: ", files.ranks - count, " of ", files.ranks,
                        " are there; missing: ", listed(missing), count > 4 ? " and others" : ""),
         .help = cat("copy them again: they have ", what)});
  }

  const Folder& folder_;
  ZeroStore& store_;
  Names names_;
  std::map<std::string, OpenedTorchFile> files_;
  ZeroSave save_;
};

}  // namespace

std::vector<ZeroSave> read_zero_saves(const Folder& folder, ZeroStore& store) {
  std::map<i64, Names> by_rank = names_in(folder, store);
  if (by_rank.empty()) by_rank[0];
  const std::string last = by_rank.rbegin()->second.any(), other = by_rank.size() > 1 ? last : "";
  std::vector<ZeroSave> saves;
  for (auto& [model_rank, names] : by_rank) {
    ZeroSave save = SaveReader(folder, store, model_rank, std::move(names)).read(saves.empty());
    save.other_rank = other;
    if (!save.models.empty()) saves.push_back(std::move(save));
  }
  return saves;
}

}  // namespace mckpt::impl
