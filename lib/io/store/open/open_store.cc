// Finds out what is at a path and opens it. An error about something else names what was found as plainly as
// what was expected: an empty file, an HTML page, a folder of another kind.
//
//   a file      by its first bytes (io/store/open/sniff.h), then by its suffix; .metadata, a tracker and a
//               safetensors index mean the folder that they are in
//   a folder    with an adapter, where the options name its base: the base with the adapter in it; else
//               the first of these that its names show:
//               ckpt_contents.json                  what verl saves of Megatron: the folders that it lists
//               .metadata, .distcp                  DCP
//               metadata.pkl                        torch_checkpointing, if it is its
//               .safetensors                        safetensors, with or without an index
//               mp_rank_*_model_states.pt, ...      DeepSpeed ZeRO (io/store/open/zero_names.h)
//               latest                              the folder of DeepSpeed that it names, if that is there
//               latest_checkpointed_iteration.txt   the iteration folder that this tracker file names
//               mp_rank_*/                          Megatron's folder of ranks
//               snapshots/                          a model in a Hugging Face hub cache
//               one iter_*/                         that iteration
//               .pt, .pth, .bin, .ckpt of a model   torch.save: one file, or ranks, or shards
//               one folder with a model             that one, as in checkpoint-100/pytorch_model_fsdp_0
//               .pt, .pth, .bin, .ckpt              torch.save, without a model
//
// A tracker, a snapshot, an iteration and a folder below lead to another folder, which is opened in turn; the
// store has a fact "chosen" that says which one and why.
#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <cerrno>

#include "core/base/argument.h"
#include "core/base/error.h"
#include "io/file/archive.h"
#include "io/file/folder.h"
#include "io/file/hub_cache.h"
#include "io/file/place.h"
#include "io/store/open/adapter_base.h"
#include "io/store/open/beside.h"
#include "io/store/open/checkpoints_below.h"
#include "io/store/open/item_folder.h"
#include "io/store/open/iteration_names.h"
#include "io/store/open/not_found.h"
#include "io/store/open/sniff.h"
#include "io/store/open/torch_names.h"
#include "io/store/open/verl_layout.h"
#include "io/store/open/zero_names.h"
#include "io/store/state_part.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

constexpr const char* kExpectedFile = "safetensors, a .pt file of torch.save, or HDF5";
constexpr const char* kExpectedFolder =
    "safetensors files, .metadata (torch DCP), mp_rank_* folders, or latest_checkpointed_iteration.txt";

constexpr const char* kSeeFormats = "mckpt formats   lists the formats that mckpt reads";

std::string_view last_part(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// Throws kNotFound for a path that leads to nothing.
bool leads_to_folder(const std::string& path, const OpenOptions& opening) {
  if (is_folder(path, opening)) return true;
  if (is_file(path, opening)) return false;
  struct stat st;
  if (::stat(path.c_str(), &st) == 0) return false;
  if (errno == ENOENT || errno == ENOTDIR) throw not_found(path);
  throw_open_failed(path, errno);
}

// What helps with a file that is no checkpoint: a packed one may have one in it.
std::string help_for_kind(FileKind kind, const std::string& path) {
  if (kind != FileKind::kGzip) return kSeeFormats;
  const bool tar = path.ends_with(".tar.gz") || path.ends_with(".tgz");
  return cat("unpack it first: ", tar ? "tar xzf " : "gunzip -k ", escaped(path, 4096));
}

std::unique_ptr<Store> open_file(const std::string& path, const OpenOptions& opening) {
  // A file that only makes sense with its folder means the folder.
  std::string_view name = last_part(path);
  if (name == ".metadata" || name == kTrackerName || name.ends_with(".safetensors.index.json"))
    return open_store(parent_folder(path), opening);
  // A .distcp file is many archives one after the other; only .metadata says what they contain.
  if (name.ends_with(".distcp"))
    throw Error(Code::kUnknownFormat, "this is a data file of a DCP folder, not a checkpoint by itself")
        .file(path)
        .help(cat("name the folder: ", escaped(parent_folder(path), 4096)));
  FileKind kind = sniff(InputFile(path, opening));
  switch (kind) {
    case FileKind::kSafetensors:
      return open_safetensors_file(path, opening);
    case FileKind::kZip:
    case FileKind::kLegacyTorch:
    case FileKind::kPickle:
    case FileKind::kTar:
      return open_torch_file(path, opening);
    case FileKind::kHdf5:
      return open_hdf5_file(path, opening);
    case FileKind::kUnknown:
      if (name.ends_with(".safetensors")) return open_safetensors_file(path, opening);
      if (has_torch_suffix(name)) return open_torch_file(path, opening);
      if (name.ends_with(".h5") || name.ends_with(".hdf5")) return open_hdf5_file(path, opening);
      throw Error(Code::kUnknownFormat, "the format of the file is not recognized")
          .file(path)
          .expected(kExpectedFile)
          .help(kSeeFormats);
    default:
      throw Error(Code::kUnknownFormat, cat("this is not a checkpoint: the file is ", sniffed_name(kind)))
          .file(path)
          .expected(kExpectedFile)
          .help(name == "config.json" ? cat("name the folder: ", escaped(parent_folder(path), 4096))
                                      : help_for_kind(kind, path));
  }
}

// What the names in a folder show, as far as the choice of a reader goes.
struct Contents {
  bool verl = false, dcp = false, items = false, safetensors = false, zero = false, latest = false,
       tracker = false, ranks = false, snapshots = false;
  std::vector<std::string> iterations, torch_files, folders, names;

  bool is_checkpoint() const {
    return verl || dcp || safetensors || zero || tracker || ranks || snapshots || iterations.size() == 1 ||
           !torch_files.empty();
  }
};

// Looks at the names in the folder, or in the folder `name_inside` in it.
Contents look(const Folder& folder, std::string_view name_inside = "") {
  Contents c;
  for (const FolderEntry& e : folder.entries(name_inside)) {
    std::string_view name = e.name;
    c.names.push_back(e.name);
    if (e.folder) c.folders.push_back(e.name);
    c.verl |= !e.folder && name == kVerlContents;
    // Ranks that did not gather leave __<rank>.metadata; an interrupted save leaves data files alone.
    c.dcp |= !e.folder && (name.ends_with(".metadata") || name.ends_with(".distcp"));
    c.items |= !e.folder && name == kItemMetadata;
    c.safetensors |=
        !e.folder && (name.ends_with(".safetensors") || name.ends_with(".safetensors.index.json"));
    c.zero |= !e.folder && zero_name(name).has_value();
    c.latest |= !e.folder && name == kZeroLatestName;
    c.tracker |= !e.folder && name == kTrackerName;
    c.ranks |= e.folder && name.starts_with("mp_rank_");
    c.snapshots |= e.folder && name == "snapshots";
    if (e.folder && is_iteration_folder(name)) c.iterations.push_back(e.name);
    if (!e.folder && has_torch_suffix(name)) c.torch_files.push_back(e.name);
  }
  return c;
}

std::string trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.remove_suffix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) text.remove_prefix(1);
  return std::string(text);
}

// The iteration folder that the tracker file names: "10" means iter_0000010, "release" means release.
std::string tracked_iteration(const Folder& folder) {
  InputFile file = folder.open_file(kTrackerName);
  std::vector<u8> bytes = file.read(0, std::min<i64>(file.size(), 64));
  std::string text = trimmed({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (text == kReleaseName) return text;
  bool digits =
      !text.empty() && text.size() <= 18 && text.find_first_not_of("0123456789") == std::string::npos;
  if (!digits)
    throw Error(Code::kUnknownFormat, "the tracker file does not name an iteration")
        .file(cat(folder.path(), "/", kTrackerName))
        .expected("a number, or the word release")
        .found(text.empty() ? "nothing" : cat("'", escaped(text), "'"));
  return iteration_folder(std::stoll(text));
}

std::unique_ptr<Store> open_iteration(const Folder& folder, const std::string& name,
                                      std::string_view chosen_by) {
  std::unique_ptr<Store> store = open_store(folder.inside(name), folder.opening());
  store->add_fact("chosen", cat(name, " (", chosen_by, ")"));
  return store;
}

std::unique_ptr<Store> open_tracked(const Folder& folder, const Contents& contents) {
  std::string name = tracked_iteration(folder);
  // verl names its folders otherwise, in a tracker file of the same name.
  if (std::optional<i64> number = iteration_number(name))
    if (std::string other = cat("global_step_", *number); std::ranges::count(contents.folders, other) > 0)
      return open_iteration(folder, other, kTrackerName);
  if (std::find(contents.iterations.begin(), contents.iterations.end(), name) == contents.iterations.end())
    throw Error(Code::kNotFound, cat("the tracker file names ", name, ", which does not exist (missing)"))
        .file(cat(folder.path(), "/", kTrackerName))
        .found(contents.iterations.empty() ? "no iteration folder" : listed(contents.iterations))
        .help(contents.iterations.empty()
                  ? std::string()
                  : cat("name one, such as ",
                        as_argument(cat(folder.path(), "/", contents.iterations.back()))));
  return open_iteration(folder, name, kTrackerName);
}

// The folders of saves of DeepSpeed: those with a file of its model.
std::vector<std::string> zero_tags(const Folder& folder) {
  std::vector<std::string> out;
  for (const FolderEntry& tag : folder.entries())
    if (tag.folder && std::ranges::any_of(folder.entries(tag.name), [](const FolderEntry& e) {
          return !e.folder && zero_name(e.name).has_value();
        }))
      out.push_back(tag.name);
  return out;
}

// DeepSpeed's folder of the save that the file `latest` names. Null if it names no folder here, and the
// folder has another checkpoint.
std::unique_ptr<Store> open_latest(const Folder& folder, bool has_others) {
  InputFile file = folder.open_file(kZeroLatestName);
  std::vector<u8> bytes = file.read(0, std::min<i64>(file.size(), 4096));
  const std::string tag = trimmed({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  try {
    check_inside_name(tag);
    folder.entries(tag);
  } catch (Error& e) {
    if (has_others) return nullptr;
    const std::string path = cat(folder.path(), "/", kZeroLatestName);
    if (e.code() == Code::kNotFound) {
      const std::vector<std::string> tags = zero_tags(folder);
      throw Error(Code::kNotFound,
                  cat("the file latest names ", escaped(tag), ", which does not exist (missing)"))
          .file(path)
          .found(tags.empty() ? "no folder of a save" : cat("the saves ", listed(tags)))
          .help(tags.empty() ? "the folder of the save was not copied with it"
                             : cat("name one, such as ", as_argument(cat(folder.path(), "/", tags.back()))));
    }
    e.default_file(path);
    throw;
  }
  return open_iteration(folder, tag, kZeroLatestName);
}

// The newest of several saves: the last one, if their names are a word with numbers; otherwise the first.
const std::string& newest_of(const std::vector<std::string>& names) {
  auto word = [](const std::string& name) { return name.substr(0, name.find_last_not_of("0123456789") + 1); };
  const bool numbered = std::ranges::all_of(
      names, [&](const std::string& name) { return word(name) == word(names[0]) && word(name) != name; });
  return numbered ? names.back() : names[0];
}

// Adds the checkpoints in the folder to the error: a parent folder is the most common wrong path.
void name_below(const Folder& folder, const std::vector<std::string>& below, Error& e) {
  for (const FolderEntry& entry : folder.entries())
    if (entry.name.ends_with(kStagingSuffix))
      e.note(cat("an unfinished conversion is here, ", escaped(entry.name),
                 ": repeat its command to complete it"));
  if (below.empty()) return;
  constexpr std::size_t kMostCommands = 8;
  e.note(cat("checkpoints in it: ", listed(below, 20)));
  for (std::size_t i = 0; i < std::min(below.size(), kMostCommands); i++)
    e.note(cat("mckpt inspect ", as_argument(folder.inside(below[i]))));
  e.help(cat("name one of them, such as ", as_argument(folder.inside(newest_of(below)))));
}

// Whether the file's name shows that it is one of a set of ranks or shards.
bool is_one_of_several(std::string_view file) { return rank_name(file) || shard_count(file) > 0; }

// Files of torch.save, of which those of a model decide: one of them is the store, the others are beside it.
std::unique_ptr<Store> open_torch_files_of(const Folder& folder, const std::vector<std::string>& files,
                                           const std::vector<std::string>& models) {
  const bool alone = files.size() == 1;
  const std::string* one = alone ? &files[0] : models.size() == 1 ? &models[0] : nullptr;
  if (one == nullptr || is_one_of_several(*one)) return open_torch_folder(folder.path(), folder.opening());
  std::unique_ptr<Store> store = open_torch_file(folder.inside(*one), folder.opening());
  if (!alone) store->add_fact("chosen", cat(*one, " (the only model)"));
  return store;
}

// A folder whose own names show nothing but files of torch.save, or nothing at all.
std::unique_ptr<Store> open_folder_of_folders(const Folder& folder, const Contents& contents) {
  std::vector<std::string> models;
  for (const std::string& name : contents.torch_files)
    if (part_of_path(name) == StatePart::kModel) models.push_back(name);
  if (!models.empty()) return open_torch_files_of(folder, contents.torch_files, models);
  refuse_unfinished_verl(folder);
  const std::vector<std::string> below = checkpoints_below(folder);
  if (std::string name = only_checkpoint(below); !name.empty())
    if (contents.torch_files.empty() || part_of_path(name) == StatePart::kModel)
      return open_iteration(folder, name,
                            part_of_path(name) == StatePart::kModel && below.size() > 1
                                ? "the only model"
                                : "the only checkpoint");
  if (below.empty() && !contents.torch_files.empty())
    return open_torch_files_of(folder, contents.torch_files, models);
  Error e(Code::kUnknownFormat, below.size() > 1 ? "the folder holds several checkpoints, and is none itself"
                                                 : "the folder holds no checkpoint that mckpt knows");
  e.file(folder.path())
      .expected(kExpectedFolder)
      .found(contents.names.empty() ? "an empty folder" : listed(contents.names))
      .help(kSeeFormats);
  name_below(folder, below, e);
  if (!contents.iterations.empty())
    e.help(cat("there is no tracker file; name one iteration, such as ",
               as_argument(cat(folder.path(), "/", contents.iterations.back()))));
  throw e;
}

// Files of torch.save beside safetensors files are not part of that model. If it cannot be opened, the error
// names them.
std::unique_ptr<Store> open_safetensors_of(const Folder& folder, const Contents& contents) {
  try {
    return open_safetensors_folder(folder.path(), folder.opening());
  } catch (Error& e) {
    if (!contents.torch_files.empty())
      e.note(
          cat("there are also files of torch.save in the folder, each of which can be opened by its name: ",
              listed(contents.torch_files)));
    throw;
  }
}

std::unique_ptr<Store> open_folder(const std::string& path, const OpenOptions& opening) {
  if (std::optional<HubSnapshot> snapshot = hub_snapshot(path)) {
    std::unique_ptr<Store> store = open_store(cat(path, "/", snapshot->name), opening);
    store->add_fact("chosen", cat(snapshot->name, " (", snapshot->by, ")"));
    return store;
  }
  Folder folder(path, opening);
  Contents contents = look(folder);
  if (opening.base && verl_adapter(folder).empty() && is_adapter_folder(folder))
    return opening.base->open(folder.path(), opening);
  if (contents.verl) return open_verl(folder);
  if (contents.dcp) return open_dcp(folder.path(), opening);
  if (contents.items)
    if (std::unique_ptr<Store> store = open_item_folder(folder)) return store;
  if (contents.safetensors) return open_safetensors_of(folder, contents);
  if (contents.zero) return open_zero(folder.path(), opening);
  if (contents.latest)
    if (auto store = open_latest(folder, contents.is_checkpoint())) return store;
  if (contents.tracker) return open_tracked(folder, contents);
  if (contents.ranks) return open_megatron_run(folder.path(), opening);
  // A copy of a part of a cache: what names a snapshot is not there.
  if (contents.snapshots)
    if (const auto below = folder.entries("snapshots"); below.size() == 1)
      return open_iteration(folder, cat("snapshots/", below[0].name), "the only snapshot");
  if (contents.iterations.size() == 1) return open_iteration(folder, contents.iterations[0], "the only one");
  return open_folder_of_folders(folder, contents);
}

}  // namespace

bool is_checkpoint_folder(const Folder& folder, std::string_view name) {
  return look(folder, name).is_checkpoint();
}

bool is_folder_of_folders(const Folder& folder) {
  Contents c = look(folder);
  std::erase_if(c.torch_files,
                [](const std::string& name) { return part_of_path(name) != StatePart::kModel; });
  return !c.is_checkpoint();
}

std::unique_ptr<Store> open_store(const std::string& path, const OpenOptions& opening) {
  if (path.empty()) throw Error(Code::kUsage, "the path of the checkpoint is empty");
  std::shared_ptr<const Archive> archive = open_archive(path, opening);
  if (!archive) return leads_to_folder(path, opening) ? open_folder(path, opening) : open_file(path, opening);
  const std::string& inside = archive->index().opened;
  std::unique_ptr<Store> store =
      inside.empty() ? open_folder(path, opening) : open_store(cat(path, "/", inside), opening);
  store->add_fact("archive", cat("HDF5, ", counted(std::ssize(archive->index().parts), "file")));
  return store;
}

}  // namespace mckpt::impl
