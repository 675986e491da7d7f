// One iteration of a Megatron run in the old per-rank form (--ckpt-format torch):
//
//   iter_0000010/mp_rank_<tp>[_<pp>][_<ep>]/model_optim_rng.pt, and other files beside it
//
// Which part of a parameter a rank has depends on the parameter, so ranks are not joined here (lib/convert
// does): a tensor is named by its rank's folder, mp_rank_00/model.decoder.... Tensors of a file other than
// model_optim_rng.pt have its name before their own: mp_rank_00/distrib_optim.pt:....
#include <algorithm>
#include <map>
#include <optional>

#include "core/base/error.h"
#include "core/fsdp/rank_folders.h"
#include "io/file/folder.h"
#include "io/saves/megatron_save.h"
#include "io/saves/rank_order.h"
#include "io/store/missing_file.h"
#include "io/store/open/format_ids.h"
#include "io/torch/files.h"
#include "io/torch/store.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kMainFile = "model_optim_rng.pt", kDistributed = "distrib_optim.pt";

std::vector<std::string> rank_folders(const Folder& folder) {
  std::vector<std::string> out;
  for (const FolderEntry& e : folder.entries())
    if (e.folder && !rank_folder_numbers(e.name).empty()) out.push_back(e.name);
  return out;
}

// An integer field of the run's arguments, or -1.
i64 argument(const TorchStore& store, std::string_view field) {
  for (std::size_t i = 0; i < store.objects().size(); i++) {
    if (!store.objects()[i].name.ends_with("/args")) continue;
    std::shared_ptr<const PickleValue> args = store.object(static_cast<i64>(i));
    const PickleValue* v = args->is(PickleValue::Kind::kObject) ? args->as_object().field(field) : nullptr;
    return v != nullptr && v->is_int() ? v->as_int() : -1;
  }
  return -1;
}

// Every rank writes a main file; other files, of an optimizer, are written by some ranks
// (find_missing_optimizers()).
void find_missing_files(TorchStore& store, const std::vector<std::string>& folders,
                        const std::vector<std::string>& files) {
  std::vector<std::string> missing;
  auto is_main = [](const std::string& f) { return f.ends_with(cat("/", kMainFile)); };
  const bool any_main = std::ranges::any_of(files, is_main);
  for (const std::string& rank : folders) {
    bool found = std::ranges::any_of(files, [&](const std::string& f) {
      return f.starts_with(cat(rank, "/")) && (!any_main || is_main(f));
    });
    if (found) continue;
    if (any_main) missing.push_back(cat(rank, "/", kMainFile));
    store.add_finding(
        missing_file(Code::kShardMissing, any_main ? missing.back() : rank,
                     cat(": its folder has no ", any_main ? kMainFile : std::string_view(".pt file")),
                     "copy it again; its tensors are lost otherwise", "the rank's"));
  }
  for (std::string& file : missing) store.add_missing_file(std::move(file));
}

// The grid of the run, by its args; nothing if they do not say it.
std::optional<Grid> grid_of_run(const TorchStore& store) {
  Grid grid;
  grid.tp = argument(store, "tensor_model_parallel_size");
  grid.pp = argument(store, "pipeline_model_parallel_size");
  grid.ep = std::max<i64>(1, argument(store, "expert_model_parallel_size"));
  if (grid.tp < 1 || grid.pp < 1) return std::nullopt;
  grid.etp = argument(store, "expert_tensor_parallel_size");
  if (grid.etp < 1) grid.etp = grid.tp;
  return grid;
}

// The folders that the run writes, each with its first rank; empty if the args do not say it.
std::vector<std::pair<std::string, Cell>> folders_of_run(const TorchStore& store) {
  const std::optional<Grid> grid = grid_of_run(store);
  std::vector<std::pair<std::string, Cell>> out;
  if (!grid) return out;
  try {
    for (const Cell& cell : cells_of_folders(*grid)) out.emplace_back(rank_folder(*grid, cell), cell);
  } catch (const Error&) {
    return {};  // no run has such args; the names alone are looked at
  }
  return out;
}

void add_missing_ranks(TorchStore& store, const std::vector<std::string>& folders, i64 expected,
                       const std::vector<std::string>& missing) {
  store.add_finding({.code = Code::kShardMissing,
                     .file = missing.empty() ? std::string() : cat(missing[0], "/", kMainFile),
                     .message = cat("folders of ranks are missing: ", folders.size(), " of ", expected,
                                    " are there: ", listed(folders),
                                    missing.empty() ? "" : cat("; missing: ", listed(missing))),
                     .help = "copy the missing mp_rank_* folders; their tensors are lost otherwise"});
  for (const std::string& rank : missing) store.add_missing_file(cat(rank, "/", kMainFile));
}

// Every rank of the run's grid has a folder. Without args, every combination of the numbers up to the largest
// must be there.
void find_missing_ranks(TorchStore& store, const std::vector<std::string>& folders) {
  if (const auto of_run = folders_of_run(store); !of_run.empty()) {
    std::vector<std::string> missing;
    for (const auto& [name, cell] : of_run)
      if (std::ranges::find(folders, name) == folders.end()) missing.push_back(name);
    if (!missing.empty()) add_missing_ranks(store, folders, std::ssize(of_run), missing);
    return;
  }
  std::map<std::vector<i64>, bool> there;
  std::vector<i64> most(rank_folder_numbers(folders[0]).size(), 0);
  for (const std::string& f : folders) {
    std::vector<i64> n = rank_folder_numbers(f);
    if (n.size() != most.size()) {
      store.add_finding({.code = Code::kBadTorchFile,
                         .file = f,
                         .message = "the names of the rank folders have different numbers of parts"});
      return;
    }
    for (std::size_t d = 0; d < n.size(); d++) most[d] = std::max(most[d], n[d]);
    there[n] = true;
  }
  i64 expected = 1;
  for (i64 m : most) expected = checked_mul(expected, m + 1, "the number of ranks");
  if (expected != static_cast<i64>(there.size())) add_missing_ranks(store, folders, expected, {});
}

// A distributed optimizer has a file in the folder of every rank that trains something, which its main file
// says by its "optimizer". The dense parameters are in the files of the first data-parallel ranks; folders of
// other ranks, which have other experts, have files where experts are trained:
//
//   mp_rank_00_000/distrib_optim.pt    0.0.(dtypes).param    dense       1.0.(dtypes).param    its experts
//   mp_rank_00_001/distrib_optim.pt                                      1.0.(dtypes).param    its experts
void find_missing_optimizers(TorchStore& store, const std::vector<std::string>& files) {
  auto file_of = [](const std::string& rank) { return cat(rank, "/", kDistributed); };
  auto has = [&](const std::string& rank) { return std::ranges::find(files, file_of(rank)) != files.end(); };
  auto trains = [&](const std::string& rank) {
    const std::string own = cat(rank, "/optimizer");
    return std::ranges::any_of(store.objects(), [&](const Object& o) {
      return o.name == own || (o.name.starts_with(own) && o.name[own.size()] == '.');
    });
  };
  auto has_experts = [&](const std::string& rank) {
    const std::string experts = cat(file_of(rank), ":1.");
    for (i64 t = 0; t < store.tensor_count(); t++)
      if (store.name(t).starts_with(experts)) return true;
    return false;
  };
  const auto ranks = folders_of_run(store);
  if (std::ranges::none_of(ranks, [&](const auto& r) { return has(r.first); })) return;
  for (const auto& [rank, cell] : ranks) {
    if (has(rank) || !trains(rank)) continue;
    const i64 stage = cell.pp;
    if ((cell.dp > 0 || cell.cp > 0) && std::ranges::none_of(ranks, [&](const auto& r) {
          return r.second.pp == stage && has_experts(r.first);
        }))
      continue;
    store.add_finding(
        missing_file(Code::kShardMissing, file_of(rank), cat(": other folders have a ", kDistributed),
                     "copy it again; the states of its optimizer are lost otherwise", "the rank's"));
  }
}

// The fact "layout": "tp=2 pp=1 cp=1".
void add_layout(TorchStore& store) {
  std::string layout;
  for (auto [name, field] : {std::pair{"tp", "tensor_model_parallel_size"},
                             {"pp", "pipeline_model_parallel_size"},
                             {"vpp", "virtual_pipeline_model_parallel_size"},
                             {"cp", "context_parallel_size"},
                             {"ep", "expert_model_parallel_size"},
                             {"etp", "expert_tensor_parallel_size"}})
    if (i64 n = argument(store, field); n > 0) layout += cat(layout.empty() ? "" : " ", name, "=", n);
  if (!layout.empty()) store.add_fact("layout", layout);
}

// The fact "optimizer", where its states are in files of their own: stretches of the buffers of one run.
void add_optimizer(TorchStore& store, const std::vector<std::string>& files) {
  for (std::string_view own : {"distrib_optim", "layer_wise_optimizer"})
    if (std::ranges::any_of(files,
                            [&](std::string_view f) { return f.substr(f.find('/') + 1).starts_with(own); }))
      store.add_fact("optimizer", cat(own, ", by ranks of the run"));
}

}  // namespace

std::unique_ptr<Store> open_megatron_run(const std::string& path, const OpenOptions& opening) {
  Folder folder(path, opening);
  std::vector<std::string> ranks = rank_folders(folder), names;
  if (ranks.empty()) throw Error(Code::kUnknownFormat, "the folder has no mp_rank_* folder").file(path);
  std::map<std::string, i32, std::less<>> rank_of;
  for (const std::string& r : ranks) {
    rank_of[r] = static_cast<i32>(rank_of.size());
    for (const FolderEntry& e : folder.entries(r))
      if (!e.folder && e.name.ends_with(".pt")) names.push_back(cat(r, "/", e.name));
  }
  auto store = std::make_unique<TorchStore>(path, Format::kMegatronRanks, opening);
  store->set_ranks(static_cast<i64>(ranks.size()));
  for (OpenedTorchFile& o : open_torch_files(folder, names)) {
    if (o.problem) {
      store->add_finding(*o.problem);
      continue;
    }
    std::size_t slash = o.path.find('/');
    std::string rank = o.path.substr(0, slash), name = o.path.substr(slash + 1);
    std::string prefix = name == kMainFile ? rank + "/" : cat(o.path, ":");
    i32 file = store->add_file(o.path, o.bytes, std::move(*o.file), prefix, rank_of[rank]);
    for (i64 row = 0; row < store->table(file).size(); row++) store->add_tensor(file, row, prefix);
  }
  find_missing_files(*store, ranks, names);
  find_missing_ranks(*store, ranks);
  find_missing_optimizers(*store, names);
  for (Finding& f : mixed_saves(*store)) store->add_finding(std::move(f));
  for (Finding& f : rank_order(*store).findings) store->add_finding(std::move(f));
  add_layout(*store);
  add_optimizer(*store, names);
  return store;
}

}  // namespace mckpt::impl
