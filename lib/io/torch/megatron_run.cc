// One iteration of a Megatron run in the old per-rank form (--ckpt-format torch):
//
//   iter_0000010/mp_rank_<tp>[_<pp>][_<ep>]/model_optim_rng.pt, and other files beside it
//
// Which part of a parameter a rank has depends on the parameter, so ranks are not joined here (lib/convert
// does): a tensor is named by its rank's folder, mp_rank_00/model.decoder.... Tensors of a file other than
// model_optim_rng.pt have its name before their own: mp_rank_00/distrib_optim.pt:....
#include <algorithm>
#include <map>

#include "core/base/error.h"
#include "io/file/folder.h"
#include "io/torch/files.h"
#include "io/torch/store.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kMainFile = "model_optim_rng.pt";
constexpr std::string_view kRankPrefix = "mp_rank_";

// The numbers of mp_rank_01_002: 1, 2; empty if the name is not made of them.
std::vector<i64> rank_numbers(std::string_view name) {
  std::vector<i64> out;
  name.remove_prefix(kRankPrefix.size());
  while (true) {
    std::size_t digits = std::min(name.find_first_not_of("0123456789"), name.size());
    if (digits == 0 || digits > 9 || out.size() == 3) return {};
    i64 n = 0;
    for (char c : name.substr(0, digits)) n = n * 10 + (c - '0');
    out.push_back(n);
    name.remove_prefix(digits);
    if (name.empty()) return out;
    if (name[0] != '_') return {};
    name.remove_prefix(1);
  }
}

std::vector<std::string> rank_folders(const Folder& folder) {
  std::vector<std::string> out;
  for (const FolderEntry& e : folder.entries())
    if (e.folder && e.name.starts_with(kRankPrefix) && !rank_numbers(e.name).empty()) out.push_back(e.name);
  return out;
}

// An integer field of the run's arguments, or -1.
i64 argument(const TorchStore& store, std::string_view field) {
  for (std::size_t i = 0; i < store.objects().size(); i++) {
    if (!store.objects()[i].name.ends_with("/args")) continue;
    std::shared_ptr<const PickleValue> args = store.object(static_cast<i64>(i));
    if (!args->is(PickleValue::Kind::kObject)) continue;
    const PickleValue* v = args->as_object().field(field);
    return v != nullptr && v->is_int() ? v->as_int() : -1;
  }
  return -1;
}

// The sizes of the run that the numbers of mp_rank_* run through: tensor ranks, then pipeline stages and
// expert ranks if there are several.
std::vector<i64> grid_of_run(const TorchStore& store) {
  std::vector<i64> sizes = {argument(store, "tensor_model_parallel_size")};
  for (const char* field : {"pipeline_model_parallel_size", "expert_model_parallel_size"})
    if (i64 n = argument(store, field); n > 1) sizes.push_back(n);
  return sizes;
}

// Every rank writes a main file; other files, of an optimizer, are written by some ranks.
void find_missing_files(TorchStore& store, const std::vector<std::string>& folders,
                        const std::vector<std::string>& files) {
  auto is_main = [](const std::string& f) { return f.ends_with(cat("/", kMainFile)); };
  const bool any_main = std::ranges::any_of(files, is_main);
  for (const std::string& rank : folders) {
    bool found = std::ranges::any_of(files, [&](const std::string& f) {
      return f.starts_with(cat(rank, "/")) && (!any_main || is_main(f));
    });
    if (!found)
      store.add_finding({.code = Code::kShardMissing,
                         .file = rank,
                         .message = cat("the rank's file is missing: its folder has no ",
                                        any_main ? kMainFile : std::string_view(".pt file")),
                         .help = "copy it again; its tensors are lost otherwise"});
  }
}

// Ranks fill a grid: every combination of the numbers up to the largest must be there, and the run's
// arguments say how large it is.
void find_missing_ranks(TorchStore& store, const std::vector<std::string>& folders) {
  std::map<std::vector<i64>, bool> there;
  std::vector<i64> most(rank_numbers(folders[0]).size(), 0);
  for (const std::string& f : folders) {
    std::vector<i64> n = rank_numbers(f);
    if (n.size() != most.size()) {
      store.add_finding({.code = Code::kBadTorchFile,
                         .file = f,
                         .message = "the names of the rank folders have different numbers of parts"});
      return;
    }
    for (std::size_t d = 0; d < n.size(); d++) most[d] = std::max(most[d], n[d]);
    there[n] = true;
  }
  std::vector<i64> sizes = grid_of_run(store);
  if (sizes.size() > most.size()) {
    store.add_finding(
        {.code = Code::kShardMissing,
         .message = cat("folders of ranks are missing: a training run with ", sizes.size(),
                        " kinds of ranks writes folders with as many numbers in their names; found ",
                        listed(folders))});
    return;
  }
  // Names of more numbers than the run needs: which one is of what is not known but for the first.
  if (sizes.size() < most.size()) sizes.resize(1);
  for (std::size_t d = 0; d < sizes.size(); d++) most[d] = std::max(most[d], sizes[d] - 1);
  i64 expected = 1;
  for (i64 m : most) expected = checked_mul(expected, m + 1, "the number of ranks");
  if (expected == static_cast<i64>(there.size())) return;
  store.add_finding({.code = Code::kShardMissing,
                     .message = cat("folders of ranks are missing: ", there.size(), " of ", expected,
                                    " are there: ", listed(folders)),
                     .help = "copy the missing mp_rank_* folders; their tensors are lost otherwise"});
}

// The fact "layout": "tp=2 pp=1 cp=1".
void add_layout(TorchStore& store) {
  std::string layout;
  for (auto [name, field] : {std::pair{"tp", "tensor_model_parallel_size"},
                             {"pp", "pipeline_model_parallel_size"},
                             {"cp", "context_parallel_size"},
                             {"ep", "expert_model_parallel_size"}})
    if (i64 n = argument(store, field); n > 0) layout += cat(layout.empty() ? "" : " ", name, "=", n);
  if (!layout.empty()) store.add_fact("layout", layout);
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
  add_layout(*store);
  return store;
}

}  // namespace mckpt::impl
