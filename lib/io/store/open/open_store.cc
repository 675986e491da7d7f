// Finds out what is at a path and opens it. An error about something else names what was found as plainly as
// what was expected: an empty file, an HTML page, a folder of another kind.
//
//   a file      by its first bytes (io/store/open/sniff.h), then by its suffix; .metadata, a tracker and a
//               safetensors index mean the folder that they are in
//   a folder    with an adapter, where the options name its base: the base with the adapter in it; else
//               the first row of the table (io/store/open/drivers.inc) that takes its names, by turn; else
//               .pt, .pth, .bin, .ckpt of a model   torch.save: one file, or ranks, or shards
//               one folder with a model             that one, as in checkpoint-100/pytorch_model_fsdp_0
//               .pt, .pth, .bin, .ckpt              torch.save, without a model
//
// A row may lead to another folder (io/store/open/leads.h), as one folder below does: it is opened in turn.
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "core/base/argument.h"
#include "core/base/error.h"
#include "core/base/one_of.h"
#include "io/archive/archive.h"
#include "io/file/folder.h"
#include "io/file/hub_cache.h"
#include "io/file/place.h"
#include "io/rank_dump/rank_dump.h"
#include "io/store/names/dcp_names.h"
#include "io/store/names/iteration_names.h"
#include "io/store/names/torch_names.h"
#include "io/store/one_file.h"
#include "io/store/open/adapter_base.h"
#include "io/store/open/beside.h"
#include "io/store/open/checkpoints_below.h"
#include "io/store/open/file_look.h"
#include "io/store/open/folder_look.h"
#include "io/store/open/leads.h"
#include "io/store/open/not_found.h"
#include "io/store/open/two_formats.h"
#include "io/store/open/verl_layout.h"
#include "io/store/state_part.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

constexpr const char* kExpectedFolder =
    "safetensors files, .metadata (torch DCP), mp_rank_* folders, or latest_checkpointed_iteration.txt";

constexpr const char* kSeeFormats = "mckpt formats   lists the formats that mckpt reads";

// "safetensors, a .pt file of torch.save or HDF5"
std::string files_of_formats() {
  std::vector<std::string_view> out;
  for (const Driver& driver : all_drivers())
    if (!driver.a_file.empty()) out.push_back(driver.a_file);
  return one_of(out);
}

std::string_view last_part(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// Throws kNotFound for a path that leads to nothing.
bool opens_as_folder(const std::string& path, const OpenOptions& opening) {
  if (is_folder(path, opening)) return true;
  if (is_file(path, opening)) return false;
  struct stat st;
  if (::stat(path.c_str(), &st) == 0) return false;
  if (errno == ENOENT || errno == ENOTDIR) throw not_found(path);
  throw_open_failed(path, errno);
}

// Advice for a file that is not a checkpoint: a packed file may have one in it.
std::string help_for_kind(FileKind kind, const std::string& path) {
  if (kind != FileKind::kGzip) return kSeeFormats;
  const bool tar = path.ends_with(".tar.gz") || path.ends_with(".tgz");
  return cat("unpack it first: ", tar ? "tar xzf " : "gunzip -k ", escaped(path, 4096));
}

bool can_be_opened(const std::string& folder, const OpenOptions& opening) {
  try {
    return open_store(folder, opening) != nullptr;
  } catch (const Error& e) {
    if (e.is_of_the_moment() || e.code() == Code::kInterrupted) throw;
    return false;
  }
}

// The rows that open folders, in the order in which they are asked.
std::vector<const Driver*> by_turn() {
  std::vector<const Driver*> out;
  for (const Driver& d : all_drivers())
    if (d.open_folder != nullptr) out.push_back(&d);
  std::ranges::stable_sort(out, {}, &Driver::turn);
  return out;
}

// The save that a file of it means, also beside weights of Hugging Face.
std::unique_ptr<Store> open_save(const std::string& path, const OpenOptions& opening) {
  const Folder folder(path, opening);
  if (!has_two_formats(folder)) return open_store(path, opening);
  const FolderLook look(folder);
  for (const Driver* driver : by_turn())
    if (driver->family == FormatFamily::kDcp && driver->is_folder(look))
      if (std::unique_ptr<Store> store = driver->open_folder(look)) return store;
  return open_store(path, opening);
}

std::unique_ptr<Store> open_file(const std::string& path, const OpenOptions& opening) {
  // A file that only makes sense with its folder means the folder.
  std::string_view name = last_part(path);
  if (name == kDcpMetadata) return open_save(parent_folder(path), opening);
  if (name == kTrackerName || name.ends_with(".safetensors.index.json"))
    return open_store(parent_folder(path), opening);
  // A .distcp file is many archives one after the other; only .metadata says what they contain.
  if (is_dcp_data(name)) {
    const std::string folder = parent_folder(path);
    // A save without .metadata has what each rank wrote of it.
    if (is_file(cat(folder, "/", kDcpMetadata), opening) || can_be_opened(folder, opening))
      if (std::unique_ptr<Store> one = one_file_of(open_save(folder, opening), name)) return one;
    Error e(Code::kUnknownFormat, "this is a data file of a DCP folder, not a checkpoint by itself");
    e.file(path);
    throw can_be_opened(folder, opening)
        ? e.help(cat("name the folder: ", escaped(folder, 4096)))
        : e.found(cat("no .metadata in ", escaped(folder, 4096), ", which says what is in the file"))
              .help("copy the file back beside the .metadata of its save, or save again");
  }
  const InputFile file(path, opening);
  const FileLook look{name, sniff(file), file};
  for (const Driver& driver : all_drivers())
    if (driver.is_file != nullptr && driver.is_file(look)) return driver.open_file(path, opening);
  if (look.kind == FileKind::kUnknown)
    throw Error(Code::kUnknownFormat, "the format of the file is not recognized")
        .file(path)
        .expected(files_of_formats())
        .help(kSeeFormats);
  if (look.kind == FileKind::kJson && is_rank_dump(path, opening))
    throw Error(Code::kUnknownFormat, "this is not a checkpoint: the file is a dump of a live rank")
        .file(path)
        .help("`mckpt diff`, with `live` megatron or fsdp, compares it with the folder of its model");
  throw Error(Code::kUnknownFormat, cat("this is not a checkpoint: the file is ", sniffed_name(look.kind)))
      .file(path)
      .expected(files_of_formats())
      .help(name == "config.json" ? cat("name the folder: ", escaped(parent_folder(path), 4096))
                                  : help_for_kind(look.kind, path));
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

// Files of torch.save: the files of a model decide; one of them is the store, the others are beside it.
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
std::unique_ptr<Store> open_folder_of_folders(const FolderLook& look) {
  const Folder& folder = look.folder;
  std::vector<std::string> models;
  for (const std::string& name : look.torch_files)
    if (part_of_path(name) == StatePart::kModel) models.push_back(name);
  if (!models.empty()) return open_torch_files_of(folder, look.torch_files, models);
  refuse_unfinished_verl(folder);
  const std::vector<std::string> below = checkpoints_below(folder);
  if (std::string name = only_checkpoint(below); !name.empty())
    if (look.torch_files.empty() || part_of_path(name) == StatePart::kModel)
      return open_chosen(folder, name,
                         part_of_path(name) == StatePart::kModel && below.size() > 1 ? "the only model"
                                                                                     : "the only checkpoint");
  if (below.empty() && !look.torch_files.empty())
    return open_torch_files_of(folder, look.torch_files, models);
  Error e(Code::kUnknownFormat, below.size() > 1 ? "the folder holds several checkpoints, and is none itself"
                                                 : "the folder holds no checkpoint that mckpt knows");
  e.file(folder.path())
      .expected(kExpectedFolder)
      .found(look.entries.empty() ? "an empty folder" : listed(look.names()))
      .help(kSeeFormats);
  name_below(folder, below, e);
  if (!look.iterations.empty())
    e.help(cat("there is no tracker file; name one iteration, such as ",
               as_argument(cat(folder.path(), "/", look.iterations.back()))));
  throw e;
}

std::unique_ptr<Store> open_folder(const std::string& path, const OpenOptions& opening) {
  if (std::optional<HubSnapshot> snapshot = hub_snapshot(path)) {
    std::unique_ptr<Store> store = open_store(cat(path, "/", snapshot->name), opening);
    store->add_fact("chosen", cat(snapshot->name, " (", snapshot->by, ")"));
    return store;
  }
  const Folder folder(path, opening);
  const FolderLook look(folder);
  if (opening.base && verl_adapter(folder).empty() && is_adapter_folder(folder))
    return opening.base->open(folder.path(), opening);
  refuse_two_formats(folder);
  const bool without_save = has_two_formats(folder);
  for (const Driver* driver : by_turn())
    if (driver->is_folder(look) && !(without_save && driver->family == FormatFamily::kDcp))
      if (std::unique_ptr<Store> store = driver->open_folder(look)) return store;
  return open_folder_of_folders(look);
}

}  // namespace

bool is_checkpoint_folder(const Folder& folder, std::string_view name) {
  return FolderLook(folder, name).is_checkpoint();
}

bool is_folder_of_folders(const Folder& folder) {
  FolderLook look(folder);
  std::erase_if(look.torch_files,
                [](const std::string& name) { return part_of_path(name) != StatePart::kModel; });
  return !look.is_checkpoint();
}

std::unique_ptr<Store> open_store(const std::string& path, const OpenOptions& opening) {
  if (path.empty()) throw Error(Code::kUsage, "the path of the checkpoint is empty");
  std::shared_ptr<const Archive> archive = open_archive(path, opening);
  if (!archive) return opens_as_folder(path, opening) ? open_folder(path, opening) : open_file(path, opening);
  const std::string& inside = archive->index().opened;
  std::unique_ptr<Store> store =
      inside.empty() ? open_folder(path, opening) : open_store(cat(path, "/", inside), opening);
  store->add_fact("archive", cat("HDF5, ", counted(std::ssize(archive->index().parts), "file")));
  return store;
}

}  // namespace mckpt::impl
