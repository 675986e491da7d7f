// Asks file systems for room and makes folders durable. The answer about room can be wrong a moment later;
// it is a courtesy that refuses hopeless work early. The reservation of each file's space decides
// (io/output/output_files.cc).
#include "io/file/place.h"

#include <fcntl.h>
#include <linux/btrfs.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "core/base/error.h"
#include "io/file/retried.h"
#include "runtime/system/folder_names.h"

namespace mckpt::impl {
namespace {

// True for /proc, /sys and the like, where even root cannot create files.
bool is_of_kernel(const std::string& folder) {
  struct statfs fs;
  if (::statfs(folder.c_str(), &fs) != 0) return false;
  constexpr i64 kTypes[] = {PROC_SUPER_MAGIC,   SYSFS_MAGIC,         DEBUGFS_MAGIC,      SECURITYFS_MAGIC,
                            CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC, DEVPTS_SUPER_MAGIC, TRACEFS_MAGIC};
  return std::ranges::find(kTypes, static_cast<i64>(fs.f_type)) != std::end(kTypes);
}

// pre: the path exists.
void refuse_file(const std::string& path) {
  struct stat st;
  if (::stat(path.c_str(), &st) != 0 || S_ISDIR(st.st_mode)) return;
  throw Error(Code::kOutputExists, "the output is a folder, or is made in one, and here is a file")
      .file(path)
      .expected("a folder, or a name that does not exist yet")
      .found("a file")
      .help("choose another name for the output");
}

}  // namespace

std::string parent_folder(const std::string& path) {
  std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

void check_room(const std::string& path, i64 bytes, i64 files) {
  struct statvfs fs;
  // The folder may not exist yet: the first existing one above it answers.
  std::string folder = parent_folder(path);
  while (::statvfs(folder.c_str(), &fs) != 0) {
    // Writing will report what is wrong
    if ((errno != ENOENT && errno != ENOTDIR) || folder == "." || folder == "/") return;
    folder = parent_folder(folder);
  }
  refuse_file(folder);
  if (::access(folder.c_str(), W_OK | X_OK) != 0 && (errno == EACCES || errno == EROFS))
    throw Error(Code::kNoRoom,
                errno == EROFS ? "the file system is read-only" : "files cannot be created in this folder")
        .file(folder)
        .help("write to another folder, or change its rights");
  if (fs.f_blocks == 0 && is_of_kernel(folder))
    throw Error(Code::kNoRoom, "the output is in a file system of the kernel, which stores no files")
        .file(folder)
        .help("write to another folder");
  if (fs.f_blocks == 0) return;  // the size is not known: a tmpfs without limit, some FUSE file systems
  u64 free = static_cast<u64>(fs.f_bavail) * fs.f_frsize;
  if (free < static_cast<u64>(bytes)) {
    std::string needed = human_bytes(bytes), there = human_bytes(static_cast<i64>(free));
    if (needed == there) needed = counted(bytes, "byte"), there = counted(static_cast<i64>(free), "byte");
    throw Error(Code::kNoRoom, "the file system does not have enough space for the output")
        .file(path)
        .expected(needed)
        .found(cat(there, " free"))
        .help("free some space, or write to another disk");
  }
  // Some file systems do not count files.
  if (fs.f_files > 0 && static_cast<u64>(fs.f_favail) < static_cast<u64>(files))
    throw Error(Code::kNoRoom, "the file system cannot hold as many more files as the output has")
        .file(path)
        .expected(counted(files, "file"))
        .found(cat(static_cast<u64>(fs.f_favail), " free"))
        .help("remove some files, or write to another disk");
}

int sync_folder(const std::string& folder) {
  int fd = retried([&] { return ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
  if (fd < 0) return errno;
  int error = retried([&] { return ::fsync(fd); }) == 0 ? 0 : errno;
  ::close(fd);
  return error;
}

int sync_folders(const std::string& folder) {
  int of_sync = 0;
  int of_walk = walk_folder(folder, [&](const std::string& path, EntryKind kind) {
    if (kind == EntryKind::kFolder) of_sync = sync_folder(cat(folder, "/", path));
    return of_sync == 0;
  });
  if (of_sync == 0) of_sync = of_walk;
  return of_sync != 0 ? of_sync : sync_folder(folder);
}

void end_transaction(const std::string& folder) {
  int fd = retried([&] { return ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
  if (fd < 0) return;
  struct statfs fs;
  __u64 transaction = 0;
  if (::fstatfs(fd, &fs) == 0 && static_cast<i64>(fs.f_type) == i64{BTRFS_SUPER_MAGIC} &&
      retried([&] { return ::ioctl(fd, BTRFS_IOC_START_SYNC, &transaction); }) == 0)
    retried([&] { return ::ioctl(fd, BTRFS_IOC_WAIT_SYNC, &transaction); });
  ::close(fd);
}

int make_folders(const std::string& path, bool durable) {
  std::error_code ec;
  if (std::filesystem::is_directory(path, ec)) return 0;
  std::string parent = parent_folder(path);
  if (parent != path && parent != ".")
    if (int error = make_folders(parent, durable); error != 0) return error;
  if (::mkdir(path.c_str(), 0777) != 0)
    return errno == EEXIST && std::filesystem::is_directory(path, ec) ? 0 : errno;
  return durable ? sync_folder(parent) : 0;
}

bool leads_to(int fd, const std::string& path) {
  struct stat opened, named;
  return ::fstat(fd, &opened) == 0 && ::lstat(path.c_str(), &named) == 0 && opened.st_dev == named.st_dev &&
         opened.st_ino == named.st_ino;
}

}  // namespace mckpt::impl
