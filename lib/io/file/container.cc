// A path that leads to something on the disk is asked as a whole; one that leads to nothing, by its longest
// part that leads to something.
#include "io/file/container.h"

#include "io/file/file.h"
#include "io/file/folder.h"
#include "io/file/path_stat.h"

namespace mckpt::impl {

std::optional<PlaceInside> find_inside(const std::string& given, const OpenOptions& opening) {
  if (!opening.containers) return std::nullopt;
  std::string path = given;
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  if (auto itself = opening.containers->at(path, opening)) return PlaceInside{std::move(itself), ""};
  if (lstat_of(path)) return std::nullopt;
  for (std::size_t slash = path.rfind('/'); slash != path.npos && slash > 0;
       slash = path.rfind('/', slash - 1)) {
    const std::string outer = path.substr(0, slash);
    if (!stat_of(outer)) continue;
    auto container = opening.containers->at(outer, opening);
    return container ? std::optional(PlaceInside{std::move(container), path.substr(slash + 1)})
                     : std::nullopt;
  }
  return std::nullopt;
}

bool is_folder(const std::string& path, const OpenOptions& opening) {
  if (leads_to_folder(path)) return true;
  std::optional<PlaceInside> inside = find_inside(path, opening);
  return inside && inside->container->has_folder(inside->name);
}

bool is_file(const std::string& path, const OpenOptions& opening) {
  if (std::optional<struct stat> st = stat_of(path)) return S_ISREG(st->st_mode);
  std::optional<PlaceInside> inside = find_inside(path, opening);
  return inside && inside->container->find(inside->name) >= 0;
}

}  // namespace mckpt::impl
