// Reads the few bytes that name the other folder, and opens it.
#include "io/store/open/leads.h"

#include <algorithm>
#include <cctype>

#include "core/base/argument.h"
#include "core/base/error.h"
#include "io/file/folder.h"
#include "io/store/names/iteration_names.h"
#include "io/store/names/zero_names.h"
#include "io/store/open/folder_look.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

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

}  // namespace

std::unique_ptr<Store> open_chosen(const Folder& folder, const std::string& name,
                                   std::string_view chosen_by) {
  std::unique_ptr<Store> store = open_store(folder.inside(name), folder.opening());
  store->add_fact("chosen", cat(name, " (", chosen_by, ")"));
  return store;
}

std::unique_ptr<Store> open_tracked(const FolderLook& look) {
  const Folder& folder = look.folder;
  std::string name = tracked_iteration(folder);
  // verl names its folders otherwise, in a tracker file of the same name.
  if (std::optional<i64> number = iteration_number(name))
    if (std::string other = cat("global_step_", *number); look.has_folder(other))
      return open_chosen(folder, other, kTrackerName);
  if (std::find(look.iterations.begin(), look.iterations.end(), name) == look.iterations.end())
    throw Error(Code::kNotFound, cat("the tracker file names ", name, ", which does not exist (missing)"))
        .file(cat(folder.path(), "/", kTrackerName))
        .found(look.iterations.empty() ? "no iteration folder" : listed(look.iterations))
        .help(look.iterations.empty()
                  ? std::string()
                  : cat("name one, such as ", as_argument(cat(folder.path(), "/", look.iterations.back()))));
  return open_chosen(folder, name, kTrackerName);
}

std::unique_ptr<Store> open_latest(const FolderLook& look) {
  const Folder& folder = look.folder;
  InputFile file = folder.open_file(kZeroLatestName);
  std::vector<u8> bytes = file.read(0, std::min<i64>(file.size(), 4096));
  const std::string tag = trimmed({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  try {
    check_inside_name(tag);
    folder.entries(tag);
  } catch (Error& e) {
    if (look.is_checkpoint()) return nullptr;
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
  return open_chosen(folder, tag, kZeroLatestName);
}

std::unique_ptr<Store> open_only_snapshot(const FolderLook& look) {
  const std::vector<FolderEntry> below = look.folder.entries("snapshots");
  if (below.size() != 1) return nullptr;
  return open_chosen(look.folder, cat("snapshots/", below[0].name), "the only snapshot");
}

}  // namespace mckpt::impl
