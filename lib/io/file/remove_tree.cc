// Walks with descriptors, so that no part of a path is looked up twice. Two passes: the first looks for
// mounts alone, so that nothing is removed of a folder with one; the second removes, and asks again at each
// folder that it enters. A file that is a mount point is found by the first pass, and the kernel does not
// remove it.
#include "io/file/remove_tree.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>

#include "core/base/names.h"
#include "core/base/text.h"
#include "io/file/file.h"
#include "io/file/retried.h"
#include "runtime/system/folder_names.h"

namespace mckpt::impl {
namespace {

constexpr int kDeepest = 256;  // folders in each other; each has an open descriptor

struct Fd {
  int fd = -1;
  explicit Fd(int opened) : fd(opened) {}
  ~Fd() {
    if (fd >= 0) ::close(fd);
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
};

int open_folder_at(int above, const char* name) {
  return retried(
      [&] { return ::openat(above, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK); });
}

// The names in an open folder, sorted. An errno, or 0.
int names_in(int fd, std::vector<std::string>& names) {
  int again = open_folder_at(fd, ".");  // the list closes what it reads
  if (again < 0) return errno;
  std::vector<ListedEntry> entries;
  int error = list_open_folder(again, entries);
  for (ListedEntry& entry : entries) names.push_back(std::move(entry.name));
  std::sort(names.begin(), names.end(), natural_less);
  return error;
}

// The number of the mount as /proc knows it; -1 where it does not say. For kernels before 5.8, whose statx()
// does not tell mount points.
long mount_number(int fd) {
  std::unique_ptr<FILE, int (*)(FILE*)> info(std::fopen(cat("/proc/self/fdinfo/", fd).c_str(), "re"),
                                             std::fclose);
  char line[256];
  long number = -1;
  while (info && number < 0 && std::fgets(line, sizeof line, info.get()))
    if (std::sscanf(line, "mnt_id: %ld", &number) != 1) number = -1;
  return number;
}

std::string below(const std::string& folder, const std::string& name) {
  return folder.empty() ? name : cat(folder, "/", name);
}

// One walk: collects mounts, or removes.
class Walk {
 public:
  Walk(const IsMount& is_mount, bool removes, std::string_view last = "")
      : is_mount_(is_mount), removes_(removes), last_(last) {}

  // All that is in the open folder; `path` is its path from the first one.
  void visit(int fd, const std::string& path, int depth) {
    std::vector<std::string> names;
    if (int error = names_in(fd, names); error != 0) return fail(error, path);
    if (depth == 0 && !last_.empty())
      std::stable_partition(names.begin(), names.end(),
                            [&](const std::string& name) { return name != last_; });
    for (const std::string& name : names) {
      if (fault_.error != 0) return;
      visit_entry(fd, name, below(path, name), depth);
    }
  }

  std::vector<std::string> mounts;
  const RemovalFault& fault() const { return fault_; }

 private:
  void visit_entry(int above, const std::string& name, const std::string& path, int depth) {
    struct stat st;
    if (::fstatat(above, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0)
      return errno == ENOENT ? void() : fail(errno, path);
    const bool folder = S_ISDIR(st.st_mode);
    if (folder || !removes_) {
      // O_PATH: a file need not be readable to be judged, and a FIFO is not opened.
      Fd opened(folder ? open_folder_at(above, name.c_str())
                       : ::openat(above, name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
      if (opened.fd < 0) return errno == ENOENT ? void() : fail(errno, path);
      if (is_mount_(opened.fd, above)) {
        mounts.push_back(path);
        return removes_ ? fail(EBUSY, path) : void();
      }
      if (folder && depth == kDeepest) return fail(ELOOP, path);
      if (folder) visit(opened.fd, path, depth + 1);
      if (fault_.error != 0) return;
    }
    if (removes_ && ::unlinkat(above, name.c_str(), folder ? AT_REMOVEDIR : 0) != 0 && errno != ENOENT)
      fail(errno, path);
  }

  void fail(int error, const std::string& path) {
    // A walk that only looks goes on: what cannot be opened cannot be emptied either.
    if (removes_ && fault_.error == 0) fault_ = {error, path};
  }

  const IsMount& is_mount_;
  bool removes_;
  std::string_view last_;
  RemovalFault fault_;
};

}  // namespace

bool is_other_mount(int fd, int above) {
  struct statx st;
  if (::statx(fd, "", AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, &st) == 0 &&
      (st.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) != 0) {
    if ((st.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0) return true;
  } else if (long own = mount_number(fd), outer = mount_number(above);
             own >= 0 && outer >= 0 && own != outer) {
    return true;
  }
  // Files of one overlay may have several devices, folders have one.
  struct stat own, outer;
  return ::fstat(fd, &own) == 0 && S_ISDIR(own.st_mode) && ::fstat(above, &outer) == 0 &&
         own.st_dev != outer.st_dev;
}

std::vector<std::string> mounts_below(const std::string& folder, const IsMount& is_mount) {
  Fd opened(open_folder_at(AT_FDCWD, folder.c_str()));
  if (opened.fd < 0) return {};
  Walk walk(is_mount, false);
  walk.visit(opened.fd, "", 0);
  return std::move(walk.mounts);
}

RemovalFault empty_tree(const std::string& folder, const IsMount& is_mount, std::string_view last) {
  if (std::vector<std::string> mounts = mounts_below(folder, is_mount); !mounts.empty())
    return {EBUSY, mounts[0]};
  Fd opened(open_folder_at(AT_FDCWD, folder.c_str()));
  if (opened.fd < 0) return {errno == ENOENT ? 0 : errno, ""};
  Walk walk(is_mount, true, last);
  walk.visit(opened.fd, "", 0);
  return walk.fault();
}

RemovalFault remove_tree(const std::string& folder, const IsMount& is_mount, std::string_view last) {
  if (RemovalFault fault = empty_tree(folder, is_mount, last); fault.error != 0) return fault;
  return {::rmdir(folder.c_str()) == 0 || errno == ENOENT ? 0 : errno, ""};
}

std::string fault_text(const RemovalFault& fault) {
  std::string text = errno_text(fault.error);
  if (fault.path.empty()) return text;
  return cat(text, " (", escaped(fault.path, 4096),
             fault.error == EBUSY ? ": something is mounted there)" : ")");
}

}  // namespace mckpt::impl
