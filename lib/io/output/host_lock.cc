// The lock's own name can be removed by its last owner between open and flock, as the folder of StagedFile
// can: so after locking, the name must still lead to what was opened, or the loop starts again.
#include "io/output/host_lock.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "core/base/int.h"
#include "core/base/text.h"
#include "io/file/place.h"
#include "io/file/retried.h"

namespace mckpt::impl {
namespace {

constexpr i64 kLustreMagic = 0x0BD00BD0;
constexpr int kMostAttempts = 1000;

std::string lock_path(const std::string& path) {
  std::size_t end = path.find_last_not_of('/') + 1;
  std::string whole = path.substr(0, end);
  return cat(parent_folder(whole), "/.", whole.substr(whole.rfind('/') + 1), kLockSuffix);
}

bool has_no_locks(int error) { return error == ENOLCK || error == ENOSYS || error == EOPNOTSUPP; }

// A host remembers for some seconds which names a folder of NFS has: on version 4.2 a file that another host
// has removed still seems to be there. The open of the folder makes the host ask.
void ask_for_names_anew(const std::string& folder) {
  int fd = retried([&] { return ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
  if (fd >= 0) ::close(fd);
}

}  // namespace

bool HostLock::is_needed(const std::string& path) {
  struct statfs fs;
  if (::statfs(parent_folder(lock_path(path)).c_str(), &fs) != 0) return false;
  const i64 type = static_cast<i64>(fs.f_type);
  return type == i64{NFS_SUPER_MAGIC} || type == kLustreMagic;
}

bool HostLock::is_taken(const std::string& path) {
  int fd = retried([&] { return ::open(lock_path(path).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW); });
  if (fd < 0) return false;
  bool taken = retried([&] { return ::flock(fd, LOCK_SH | LOCK_NB); }) != 0 && errno == EWOULDBLOCK;
  ::close(fd);
  return taken;
}

int HostLock::take(const std::string& path) {
  if (fd_ >= 0) return 0;
  lock_path_ = lock_path(path);
  for (int attempt = 0; attempt < kMostAttempts; attempt++) {
    // An exclusive lock of NFS asks for a file that may be written.
    fd_ =
        retried([&] { return ::open(lock_path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666); });
    if (fd_ < 0 && errno == ESTALE) continue;
    if (fd_ < 0) return errno;
    int error = retried([&] { return ::flock(fd_, LOCK_EX | LOCK_NB); }) == 0 ? 0 : errno;
    ask_for_names_anew(parent_folder(lock_path_));
    if (error == 0 && leads_to(fd_, lock_path_)) return 0;
    if (has_no_locks(error)) {
      let_go();
      return 0;
    }
    ::close(std::exchange(fd_, -1));
    if (error != 0 && error != ESTALE) return error;
  }
  return EWOULDBLOCK;
}

void HostLock::let_go() {
  if (fd_ < 0) return;
  if (leads_to(fd_, lock_path_)) ::unlink(lock_path_.c_str());
  ::close(std::exchange(fd_, -1));
}

}  // namespace mckpt::impl
