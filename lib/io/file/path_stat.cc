#include "io/file/path_stat.h"

#include <cerrno>

#include "io/file/file.h"

namespace mckpt::impl {
namespace {

// Other errors are of the path itself, such as a folder above that may not be entered: what is opened next
// reports them.
bool is_of_the_disk(int error) { return error == EIO || error == ESTALE || error == ENOMEM; }

template <typename Call>
std::optional<struct stat> asked(const std::string& path, Call call) {
  struct stat st;
  if (call(path.c_str(), &st) == 0) return st;
  if (is_of_the_disk(errno)) throw_open_failed(path, errno);
  return std::nullopt;
}

}  // namespace

std::optional<struct stat> stat_of(const std::string& path) { return asked(path, ::stat); }
std::optional<struct stat> lstat_of(const std::string& path) { return asked(path, ::lstat); }

}  // namespace mckpt::impl
