// A folder that this process makes inside of the other one shows what is usual here: the owner that a file
// server writes down, and the permissions that the umask and inherited lists give. So no rule about accounts
// is needed that a file system with rules of its own would break.
#include "io/output/staged_content.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>

#include "core/base/error.h"
#include "io/file/file.h"
#include "io/file/remove_tree.h"
#include "io/output/staging_marks.h"
#include "runtime/system/folder_names.h"

namespace mckpt::impl {
namespace {

constexpr mode_t kOthersWrite = S_IWGRP | S_IWOTH;

[[noreturn]] void refuse(const std::string& folder, const std::string& what, const std::string& help) {
  throw Error(Code::kOutputExists, what).file(folder).help(help);
}

// A folder, or a plain file without another name, of the owner of the whole.
bool is_own(const std::string& path, EntryKind kind, const struct stat& whole) {
  struct stat st;
  if (::lstat(path.c_str(), &st) != 0 || st.st_uid != whole.st_uid) return false;
  return kind == EntryKind::kFolder ? S_ISDIR(st.st_mode) : S_ISREG(st.st_mode) && st.st_nlink <= 1;
}

}  // namespace

void refuse_of_others(int fd, const std::string& folder) {
  struct stat st, made;
  ::unlinkat(fd, kOwnerProbe.data(), AT_REMOVEDIR);  // of a run that was killed here
  // The usual case, in which nothing is made: another run may be removing this folder.
  if (::fstat(fd, &st) == 0 && st.st_uid == ::geteuid() && (st.st_mode & kOthersWrite) == 0) return;
  int error = ::fstat(fd, &st) != 0 || ::mkdirat(fd, kOwnerProbe.data(), 0777) != 0 ||
                      ::fstatat(fd, kOwnerProbe.data(), &made, AT_SYMLINK_NOFOLLOW) != 0
                  ? errno
                  : 0;
  if (::unlinkat(fd, kOwnerProbe.data(), AT_REMOVEDIR) != 0 && error == 0) error = errno;
  if (error == EACCES || error == EPERM || (error == 0 && made.st_uid != st.st_uid))
    refuse(
        folder,
        "the result is made in a hidden folder, and one of its name is here that belongs to another account",
        "choose another name for the result, or ask its owner to remove the folder");
  if (error != 0)
    throw Error(Code::kWriteFailed,
                cat("cannot look who may write into the unfinished output: ", errno_text(error)))
        .file(folder);
  if ((st.st_mode & ~made.st_mode & kOthersWrite) != 0)
    refuse(
        folder,
        "the result is made in a hidden folder, and other accounts may write into the one of its name that is here",
        cat("if nobody else was there, take the permission away and repeat the command: chmod go-w ",
            escaped(folder, 4096), "; otherwise remove the folder"));
}

void keep_only(const std::string& folder, const std::vector<std::string>& names) {
  std::set<std::string, std::less<>> files(names.begin(), names.end()), folders;
  for (const std::string& name : names)
    for (std::size_t at = name.find('/'); at != name.npos; at = name.find('/', at + 1))
      folders.insert(name.substr(0, at));
  struct stat own;
  std::vector<std::pair<std::string, EntryKind>> gone;
  int error = ::stat(folder.c_str(), &own) == 0 ? 0 : errno;
  if (error == 0)
    error = walk_folder(folder, [&](const std::string& path, EntryKind kind) {
      const bool planned =
          kind == EntryKind::kFolder ? folders.contains(path) : is_staging_mark(path) || files.contains(path);
      if (!planned || !is_own(cat(folder, "/", path), kind, own)) gone.emplace_back(path, kind);
      return true;
    });
  std::string at;
  for (const auto& [path, kind] : gone) {
    if (error != 0) break;
    const std::string whole = cat(folder, "/", path);
    if (kind == EntryKind::kFolder)
      error = remove_tree(whole).error;
    else
      error = ::unlink(whole.c_str()) == 0 || errno == ENOENT ? 0 : errno;
    at = path;
  }
  if (error != 0)
    throw Error(Code::kWriteFailed, cat("cannot remove what is not part of the result: ", errno_text(error)))
        .file(at.empty() ? folder : cat(folder, "/", at));
}

}  // namespace mckpt::impl
