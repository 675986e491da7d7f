// Names are listed once, and each row of the table looks through them for its own.
#include "io/store/open/folder_look.h"

#include <algorithm>

#include "io/store/driver.h"
#include "io/store/names/iteration_names.h"
#include "io/store/names/torch_names.h"

namespace mckpt::impl {

FolderLook::FolderLook(const Folder& of, std::string_view name_inside)
    : folder(of), entries(of.entries(name_inside)) {
  for (const FolderEntry& e : entries) {
    if (e.folder && is_iteration_folder(e.name)) iterations.push_back(e.name);
    if (!e.folder && has_torch_suffix(e.name)) torch_files.push_back(e.name);
  }
}

bool FolderLook::has_file(std::string_view name) const {
  return any_file([&](std::string_view other) { return other == name; });
}

bool FolderLook::has_file_ending(std::string_view end) const {
  return any_file([&](std::string_view name) { return name.ends_with(end); });
}

bool FolderLook::has_folder(std::string_view name) const {
  return std::ranges::any_of(entries, [&](const FolderEntry& e) { return e.folder && e.name == name; });
}

bool FolderLook::has_folder_beginning(std::string_view begin) const {
  return std::ranges::any_of(entries,
                             [&](const FolderEntry& e) { return e.folder && e.name.starts_with(begin); });
}

std::vector<std::string> FolderLook::names() const {
  std::vector<std::string> out;
  for (const FolderEntry& e : entries) out.push_back(e.name);
  return out;
}

bool FolderLook::is_checkpoint() const {
  return std::ranges::any_of(
      all_drivers(), [&](const Driver& d) { return d.sure && d.is_folder != nullptr && d.is_folder(*this); });
}

}  // namespace mckpt::impl
