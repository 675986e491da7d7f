// Goes down the path from its root, and on at what a link leads to: the first folder that cannot be entered
// is the reason, whatever is below it.
#include "io/file/denied.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "core/base/error.h"

namespace mckpt::impl {
namespace {

// Whether this process may do with the path what access() calls X_OK or R_OK.
bool may(const std::string& path, int what) {
  return ::faccessat(AT_FDCWD, path.c_str(), what, AT_EACCESS) == 0;
}

std::string octal(mode_t mode) {
  std::string digits(4, '0');
  for (std::size_t i = 4; i-- > 0; mode >>= 3) digits[i] = static_cast<char>('0' + (mode & 7));
  return digits;
}

// `lacks`: "r", "x" or "rx", as chmod has it; `to`: what the right is for, such as "enter the folder".
void explain(Error& error, const std::string& path, const struct stat& st, const char* to,
             const std::string& lacks) {
  const bool own = st.st_uid == ::geteuid();
  const std::string shown = escaped(path, 4096);
  const std::string chmod = cat("`chmod ", own ? "u+" : "a+", lacks, " ", shown, "`");
  error.expected(cat("the right to ", to, " ", shown))
      .found(cat("mode ", octal(st.st_mode & 07777), ", owner uid ", st.st_uid, "; mckpt runs as uid ",
                 ::geteuid()))
      .help(own ? cat(chmod, " gives this right")
                : cat("ask the owner for ", chmod, ", or run mckpt as the owner"));
}

}  // namespace

bool is_about_rights(int number) { return number == EACCES || number == EPERM; }

void explain_denied(Error& error, const std::string& path, int number) {
  if (!is_about_rights(number)) return;
  std::error_code failed;
  const std::filesystem::path whole = std::filesystem::absolute(path, failed);
  if (failed) return;
  struct stat st;
  std::filesystem::path at;
  for (const std::filesystem::path& part : whole) {
    at /= part;
    if (::stat(at.c_str(), &st) != 0) {
      if (errno != EACCES) return;
      const std::filesystem::path target = std::filesystem::read_symlink(at, failed);
      return failed ? void() : explain_denied(error, at.parent_path() / target, number);
    }
    if (at != whole && S_ISDIR(st.st_mode) && !may(at, X_OK))
      return explain(error, at, st, "enter the folder", "x");
  }
  const bool folder = S_ISDIR(st.st_mode);
  const std::string lacks = cat(may(whole, R_OK) ? "" : "r", folder && !may(whole, X_OK) ? "x" : "");
  if (!lacks.empty()) return explain(error, whole, st, folder ? "read the folder" : "read the file", lacks);
  error.found(cat("mode ", octal(st.st_mode & 07777), ", which allows it"))
      .help("the file system or a security module of the system refuses it: ask who administers the machine");
}

}  // namespace mckpt::impl
