// Reads, writes and removes the hidden files that mark an unfinished folder. Marks are opened without
// following links, so that a link in a folder that somebody else prepared cannot lead the program to other
// files.
#include "io/output/staging_marks.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "core/base/error.h"
#include "core/base/text.h"
#include "io/file/place.h"
#include "io/file/retried.h"
#include "io/listing/manifest.h"

namespace mckpt::impl {
namespace {

// In the order of removal: .plan, which says that something is left to do, is removed last.
constexpr std::string_view kMarks[] = {kDoneMark, kReplacesMark, kBootMark, kPublishMark, kPlanMark};
constexpr mode_t kOwnersMark = 0644;  // nobody else may say that work is done, whatever the umask allows
constexpr std::size_t kMostBytes = 8192;

std::string mark_path(const std::string& folder, std::string_view name) { return cat(folder, "/", name); }

int write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    ssize_t n = retried([&] { return ::write(fd, text.data(), text.size()); });
    if (n <= 0) return n < 0 ? errno : EIO;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return 0;
}

}  // namespace

bool is_staging_mark(std::string_view name) { return std::ranges::find(kMarks, name) != std::end(kMarks); }

void refuse_own_name(std::string_view name) {
  const std::string_view first = name.substr(0, name.find('/'));
  if (!is_staging_mark(first) && name != kManifestName) return;
  throw Error(Code::kBadPath, cat("the result would have a file '", escaped(name),
                                  "': mckpt has a file of its own of that name in every result"))
      .help("give the file another name in the source");
}

bool has_mark(const std::string& folder) {
  struct stat st;
  return std::ranges::any_of(kMarks, [&](std::string_view name) {
    return ::lstat(mark_path(folder, name).c_str(), &st) == 0 && S_ISREG(st.st_mode);
  });
}

std::string read_mark(const std::string& folder, std::string_view name) {
  std::string text;
  int fd = retried([&] {
    return ::open(mark_path(folder, name).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  });
  if (fd < 0) return text;
  text.resize(kMostBytes);
  ssize_t n = retried([&] { return ::pread(fd, text.data(), text.size(), 0); });
  ::close(fd);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
  return text;
}

int write_mark(const std::string& folder, std::string_view name, std::string_view text, bool durable) {
  int fd = retried([&] {
    return ::open(mark_path(folder, name).c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kOwnersMark);
  });
  if (fd < 0) return errno;
  int error = write_all(fd, text);
  if (error == 0 && durable) error = retried([&] { return ::fsync(fd); }) == 0 ? 0 : errno;
  ::close(fd);
  if (error != 0) ::unlink(mark_path(folder, name).c_str());
  return error;
}

int replace_plan(const std::string& folder, std::string_view text, bool durable) {
  const std::string next = mark_path(folder, kPublishMark);
  if (::unlink(next.c_str()) != 0 && errno != ENOENT) return errno;
  if (int error = write_mark(folder, kPublishMark, text, durable); error != 0) return error;
  return ::rename(next.c_str(), mark_path(folder, kPlanMark).c_str()) == 0 ? 0 : errno;
}

int remove_marks(const std::string& folder) {
  for (std::string_view name : kMarks)
    if (::unlink(mark_path(folder, name).c_str()) != 0 && errno != ENOENT) return errno;
  return 0;
}

std::string folder_identity(const std::string& path) {
  struct statx st;
  if (::statx(AT_FDCWD, path.c_str(), AT_SYMLINK_NOFOLLOW, STATX_INO | STATX_TYPE | STATX_BTIME, &st) != 0)
    return "";
  if (!S_ISDIR(st.stx_mode)) return "";
  bool born = (st.stx_mask & STATX_BTIME) != 0;
  return cat(st.stx_ino, " ", born ? st.stx_btime.tv_sec : 0, " ", born ? st.stx_btime.tv_nsec : 0);
}

}  // namespace mckpt::impl
