// A path that leads to something on the disk is asked as a whole; one that leads to nothing, by its longest
// part that leads to something.
#include "io/file/container.h"

#include <sys/stat.h>

#include <cerrno>

#include "io/file/file.h"
#include "io/file/folder.h"

namespace mckpt::impl {

std::optional<PlaceInside> find_inside(const std::string& given, const OpenOptions& opening) {
  if (!opening.containers) return std::nullopt;
  std::string path = given;
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  if (auto itself = opening.containers->at(path, opening)) return PlaceInside{std::move(itself), ""};
  struct stat st;
  if (::lstat(path.c_str(), &st) == 0) return std::nullopt;
  for (std::size_t slash = path.rfind('/'); slash != path.npos && slash > 0;
       slash = path.rfind('/', slash - 1)) {
    const std::string outer = path.substr(0, slash);
    if (::stat(outer.c_str(), &st) != 0) continue;
    auto container = opening.containers->at(outer, opening);
    return container ? std::optional(PlaceInside{std::move(container), path.substr(slash + 1)})
                     : std::nullopt;
  }
  return std::nullopt;
}

namespace {

// Whether something is at the path. Throws kReadFailed if the disk does not say: it would be taken for nothing.
bool is_there(const std::string& path, struct stat& st) {
  if (::stat(path.c_str(), &st) == 0) return true;
  if (errno == EIO || errno == ESTALE || errno == ENOMEM) throw_open_failed(path, errno);
  return false;
}

}  // namespace

bool is_folder(const std::string& path, const OpenOptions& opening) {
  struct stat st;
  if (is_there(path, st) && S_ISDIR(st.st_mode)) return true;
  std::optional<PlaceInside> inside = find_inside(path, opening);
  return inside && inside->container->has_folder(inside->name);
}

bool is_file(const std::string& path, const OpenOptions& opening) {
  struct stat st;
  if (is_there(path, st)) return S_ISREG(st.st_mode);
  std::optional<PlaceInside> inside = find_inside(path, opening);
  return inside && inside->container->find(inside->name) >= 0;
}

}  // namespace mckpt::impl
