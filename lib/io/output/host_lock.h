// One writer of a result among all hosts that share a file system.
//
// The lock of a folder is known to one host alone on NFS and Lustre: it never reaches the server. The lock of
// a file does. So on these file systems the writer of DIR/NAME also locks an empty file,
// DIR/.NAME.mckpt-lock, and removes it at the end. After a kill the file stays, without its lock, and the
// next writer takes it over.
//
//   HostLock lock;
//   if (HostLock::is_needed(path)) error = lock.take(path);      0, EWOULDBLOCK if somebody has it, or another errno
#pragma once

#include <string>
#include <string_view>

namespace mckpt::impl {

// The end of the name of the file that is locked.
inline constexpr std::string_view kLockSuffix = ".mckpt-lock";

class HostLock {
 public:
  HostLock() = default;
  HostLock(const HostLock&) = delete;
  HostLock& operator=(const HostLock&) = delete;
  ~HostLock() { let_go(); }

  // Whether other hosts do not see the lock of a folder beside the path.
  static bool is_needed(const std::string& path);
  // Whether a program on any host has it.
  static bool is_taken(const std::string& path);

  // Does not wait. Who has the lock may take it again. Returns 0 also where the server knows no locks: there
  // one writer at a time is the user's concern. Afterwards the host asks the server anew for the names in the
  // folder. pre: the folder of the path exists.
  int take(const std::string& path);
  void let_go();

 private:
  std::string lock_path_;
  int fd_ = -1;
};

}  // namespace mckpt::impl
