// A folder of several torch files, as one store. Three kinds:
//
//   model_world_size_4_rank_0.pt ...    one file for each rank: the pieces that ranks have of a tensor become
//                                       one tensor (io/ranks/rank_group.h); names in the files of other
//                                       groups than the model's begin with the group, "optim:"
//   pytorch_model-00001-of-00002.bin    shards of one state dict, each with tensors of its own; a
//                                       pytorch_model.bin beside them is another model
//                                       (io/safetensors/two_models.h), pytorch_model.bin.index.json their index
//   model.pt, optimizer.pt              independent files; tensors are named FILE:NAME
#include <algorithm>
#include <map>

#include "core/base/error.h"
#include "core/base/name_hash.h"
#include "core/base/text.h"
#include "io/file/folder.h"
#include "io/json/json_file.h"
#include "io/pickle/render.h"
#include "io/ranks/item_folder.h"
#include "io/ranks/rank_folder.h"
#include "io/safetensors/config_facts.h"
#include "io/safetensors/index.h"
#include "io/safetensors/two_models.h"
#include "io/store/findings.h"
#include "io/store/names/torch_names.h"
#include "io/store/open/format_ids.h"
#include "io/store/state_part.h"
#include "io/torch/files.h"
#include "io/torch/lone_file.h"
#include "io/torch/store.h"

namespace mckpt::impl {
namespace {

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

// The name that the whole model has in one file, by the shards' names: "pytorch_model.bin".
std::string single_name(std::string_view shard) {
  const std::string_view numbered = shard.substr(0, shard.rfind("-of-"));
  return cat(numbered.substr(0, numbered.rfind('-')), shard.substr(shard.rfind('.')));
}

// Compares the shards with their index, if it is there: without it nothing says that a shard has lost a
// tensor.
void check_index(TorchStore& store, const Folder& folder, const std::string& shard) {
  const std::string name = single_name(shard) + ".index.json";
  if (!folder.has_file(name)) {
    store.add_finding(
        {.code = Code::kBadIndex,
         .message = cat("shards of torch.save and no ", escaped(name), ": all of them are read as one set"),
         .help = "transformers loads shards by their index alone; `mckpt export` writes one",
         .warning = true});
    return;
  }
  Findings found;  // an index of another save may have a hundred thousand other names
  auto mismatch = [&](std::string tensor, std::string file, std::string message, bool warning) {
    found.add({.code = Code::kIndexMismatch,
               .tensor = std::move(tensor),
               .file = std::move(file),
               .message = std::move(message),
               .warning = warning});
  };
  NameSet<std::string_view> shards;
  NameMap<std::string_view, std::string_view> file_of;
  for (std::size_t f = 0; f < store.files().size(); f++) {
    shards.insert(store.files()[f].path);
    const TorchTable& table = store.table(static_cast<i32>(f));
    for (i64 row = 0; row < table.size(); row++) file_of.emplace(table.name(row), store.files()[f].path);
  }
  try {
    const SafetensorsIndex index =
        with_file(folder.inside(name), [&] { return parse_torch_index(json_text(folder.open_file(name))); });
    for (Finding f : index.findings) f.file = name, found.add(std::move(f));
    NameSet<std::string_view> listed, gone;
    for (const SafetensorsIndex::Entry& e : index.weight_map) {
      listed.insert(e.tensor);
      const std::string& file = index.files[e.file];
      const bool is_there = shards.contains(file);
      // Numbered shards are counted by their names.
      if (!is_there && shard_count(file) <= 0 && gone.insert(file).second)
        found.add({.code = Code::kShardMissing,
                   .file = file,
                   .message = "the index names this file, which is not one of the shards"});
      auto home = file_of.find(e.tensor);
      if (!is_there || (home != file_of.end() && home->second == file)) continue;
      const std::string where = home == file_of.end() ? "" : cat("; it is in ", escaped(home->second));
      mismatch(e.tensor, file, cat("the tensor is not in the shard that the index names", where), false);
    }
    for (const auto& [tensor, file] : file_of)
      if (!listed.contains(tensor))
        mismatch(std::string(tensor), std::string(file), "the index does not name the tensor (not listed)",
                 true);
  } catch (const Error& e) {
    found.add({.code = e.code(), .file = name, .message = e.message()});
  }
  for (Finding& f : found.take()) store.add_finding(std::move(f));
}

// The single file beside the shards that are all of one model; "" if there is none, or more than one set.
std::string single_beside(const std::vector<std::string>& names, const std::vector<std::string>& shards) {
  if (shards.empty()) return "";
  const std::string name = single_name(shards[0]);
  const bool one_set =
      std::ranges::all_of(shards, [&](const std::string& s) { return single_name(s) == name; });
  return one_set && std::ranges::find(names, name) != names.end() ? name : "";
}

// The one of two models that was chosen; the shards are beside it.
std::unique_ptr<TorchStore> open_single(const Folder& folder, const std::string& name) {
  std::vector<OpenedTorchFile> files = open_torch_files(folder, {name});
  if (files[0].problem)
    throw Error(files[0].problem->code, files[0].problem->message).file(folder.inside(name));
  auto store = std::make_unique<TorchStore>(folder.path(), files[0].file->format, folder.opening());
  store->add_fact("files", cat(name, " (chosen of two models)"));
  add_lone_file(*store, store->add_file(name, files[0].bytes, std::move(*files[0].file)));
  return store;
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
  const std::string single = ranked.empty() ? single_beside(names, shards) : "";
  if (!single.empty() && opening.model_files == ModelFiles::kSingle) {
    std::unique_ptr<TorchStore> store = open_single(folder, single);
    add_config_facts(folder, *store, [&](Finding f) { store->add_finding(std::move(f)); });
    for (std::string& name : shards)
      store->add_finding({.code = Code::kUnusedFile,
                          .file = std::move(name),
                          .message = std::string(kNotChosen),
                          .warning = true});
    return store;
  }
  // Beside the files of ranks or shards there may be others, which are not the model; files of the trainer
  // are expected there.
  std::vector<std::string>& chosen = !ranked.empty() ? ranked : !shards.empty() ? shards : names;
  std::vector<OpenedTorchFile> files = open_torch_files(folder, chosen);
  // Files that torch_checkpointing saves without a metadata.pkl.
  const bool items = ranked.empty() && shards.empty() && are_files_of_items(files);
  auto store = std::make_unique<TorchStore>(path,
                                            !ranked.empty() || items ? Format::kTorchRanks
                                            : !shards.empty()        ? Format::kTorchShards
                                                                     : Format::kTorchFiles,
                                            opening);
  for (const std::string& n : names)
    if (n != single && std::find(chosen.begin(), chosen.end(), n) == chosen.end() &&
        part_of_path(n) == StatePart::kModel)
      store->add_finding({.code = Code::kUnusedFile,
                          .file = n,
                          .message = "the file is not of a rank or a shard, so it is not part of the model",
                          .warning = true});
  for (const OpenedTorchFile& o : files)
    if (o.problem) store->add_finding(*o.problem);
  add_config_facts(folder, *store, [&](Finding f) { store->add_finding(std::move(f)); });
  if (!ranked.empty())
    add_rank_files(*store, folder, files, {});
  else if (items)
    add_rank_files(*store, folder, files, {item_name, {}});
  else if (!shards.empty())
    add_shards(*store, files), check_index(*store, folder, shards[0]);
  else
    add_separate(*store, files);
  if (!single.empty()) {
    const TwoModelNames two{single, cat("the shards ", escaped(shards[0]), " and on"),
                            "vLLM and SGLang load all of them, over each other"};
    store->add_finding(
        judge_two_models(*store, two, [&] { return open_torch_file(folder.inside(single), opening); }));
  }
  return store;
}

}  // namespace mckpt::impl
