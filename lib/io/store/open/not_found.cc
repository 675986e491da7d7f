// Looks at the names around a path that leads to nothing.
#include "io/store/open/not_found.h"

#include <algorithm>
#include <vector>

#include "core/base/names.h"
#include "io/file/place.h"
#include "runtime/system/folder_names.h"

namespace mckpt::impl {
namespace {

std::string_view last_part(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// "org/name": two plain words; or the address of a page.
bool is_hub_name(std::string_view path) {
  if (path.find("://") != path.npos) return true;
  return std::ranges::count(path, '/') == 1 && !path.starts_with('/') && !path.starts_with('.') &&
         !path.ends_with('/') && path.find_first_of("*?[ ") == path.npos;
}

}  // namespace

// The error for a path that does not exist: most are misspelt, or are names of a hub.
Error not_found(std::string path) {
  Error e(Code::kNotFound, "there is no such file or folder");
  e.file(path);
  if (path.starts_with('~')) return e.help("only a shell makes `~` the home folder: give its whole path");
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  std::string parent = parent_folder(path);
  std::vector<ListedEntry> entries;
  bool failed = list_folder(parent, entries) != 0;
  std::vector<std::string> names;
  for (ListedEntry& entry : entries) names.push_back(std::move(entry.name));
  std::string_view near = nearest(last_part(path), names);
  if (!near.empty())
    return e.help(cat(
        "did you mean ",
        escaped(parent == "." ? std::string(near) : cat(parent, parent == "/" ? "" : "/", near), 4096), "?"));
  // Where the folder before the slash is here, the name is not one of a hub.
  return e.help(
      failed && is_hub_name(path)
          ? "mckpt downloads nothing: fetch a model from a hub first, for example with `hf download NAME`"
          : "name a file or folder of this machine");
}

}  // namespace mckpt::impl
