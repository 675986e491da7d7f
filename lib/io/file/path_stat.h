// Facts about a path. A path that is not there has none; a disk that does not answer is an error: the path
// would be taken for one that is not there.
#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>

namespace mckpt::impl {

// The facts of the place where links lead. Throws kReadFailed.
std::optional<struct stat> stat_of(const std::string& path);
// The facts of a link itself. Throws kReadFailed.
std::optional<struct stat> lstat_of(const std::string& path);

inline bool leads_to_folder(const std::string& path) {
  std::optional<struct stat> st = stat_of(path);
  return st && S_ISDIR(st->st_mode);
}
inline bool is_link(const std::string& path) {
  std::optional<struct stat> st = lstat_of(path);
  return st && S_ISLNK(st->st_mode);
}

}  // namespace mckpt::impl
