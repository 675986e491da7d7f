// Looks into folders by their names alone. A folder may be anything, a home folder too, so the walk is
// bounded.
#include "io/store/open/checkpoints_below.h"

#include "core/base/error.h"
#include "io/file/folder.h"
#include "io/store/open/beside.h"
#include "io/store/state_part.h"

namespace mckpt::impl {
namespace {

constexpr int kMostDepth = 3;
constexpr int kMostFolders = 1000;

// Whether the folder, or one below it, is a checkpoint. `left`: the folders that may still be entered.
bool has_checkpoint(const Folder& folder, const std::string& name, int depth, int& left) {
  if (left-- <= 0) return false;
  try {
    if (is_checkpoint_folder(folder, name)) return true;
    if (depth == kMostDepth) return false;
    for (const FolderEntry& e : folder.entries(name))
      if (e.folder && !e.name.starts_with('.') &&
          has_checkpoint(folder, cat(name, "/", e.name), depth + 1, left))
        return true;
  } catch (const Error&) {
    // A folder that cannot be entered is not what the user meant.
  }
  return false;
}

// By its name: a file without such a name is opened when it is named.
bool is_hdf5_file(const FolderEntry& e) {
  return !e.folder && (e.name.ends_with(".h5") || e.name.ends_with(".hdf5"));
}

}  // namespace

std::vector<std::string> checkpoints_below(const Folder& folder) {
  std::vector<std::string> out;
  int left = kMostFolders;
  for (const FolderEntry& e : folder.entries())
    if (!e.name.starts_with('.') &&
        (is_hdf5_file(e) || (e.folder && has_checkpoint(folder, e.name, 1, left))))
      out.push_back(e.name);
  return out;
}

std::string only_checkpoint(const std::vector<std::string>& below) {
  std::vector<std::string> models;
  for (const std::string& name : below)
    if (part_of_path(name) == StatePart::kModel) models.push_back(name);
  if (models.size() == 1) return models[0];
  return models.empty() && below.size() == 1 ? below[0] : "";
}

}  // namespace mckpt::impl
