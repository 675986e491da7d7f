#include "io/atomic_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "io/file.h"

namespace mckpt {
namespace {

// fsync of a folder makes the names in it durable.
int sync_folder(const std::string& folder) {
  int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return errno;
  int error = ::fsync(fd) == 0 ? 0 : errno;
  ::close(fd);
  return error;
}

bool same_file(int fd, const std::string& path) {
  struct stat opened, named;
  return ::fstat(fd, &opened) == 0 && ::lstat(path.c_str(), &named) == 0 && opened.st_dev == named.st_dev &&
         opened.st_ino == named.st_ino;
}

}  // namespace

AtomicFile::AtomicFile(std::string path, Options options) : path_(std::move(path)), options_(options) {
  std::size_t slash = path_.rfind('/');
  folder_ = slash == std::string::npos ? "." : slash == 0 ? "/" : path_.substr(0, slash);
  std::string name = path_.substr(slash + 1);
  if (name.empty() || name == "." || name == "..") fail("this is not the name of a file", EISDIR);
  temporary_ = cat(folder_, "/.", name, ".mckpt-tmp");
  check_clobber();
  open_temporary();
}

AtomicFile::~AtomicFile() {
  if (fd_ < 0) return;
  ::unlink(temporary_.c_str());
  ::close(fd_);
}

void AtomicFile::check_clobber() const {
  struct stat st;
  if (::lstat(path_.c_str(), &st) != 0) return;
  if (options_.replace && S_ISREG(st.st_mode)) return;
  Error e(Code::kOutputExists, S_ISREG(st.st_mode)
                                   ? "the output file is already there"
                                   : "something other than a file has the name of the output");
  e.file(path_);
  if (S_ISREG(st.st_mode)) e.help("choose another name, or replace it with --overwrite");
  throw e;
}

// Takes over what a killed run left, but not what a living one holds.
void AtomicFile::open_temporary() {
  for (int attempt = 0; attempt < 10; attempt++) {
    fd_ = ::open(temporary_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd_ < 0) fail("cannot create the file", errno);
    if (::flock(fd_, LOCK_EX | LOCK_NB) != 0) {
      int error = errno;
      ::close(std::exchange(fd_, -1));
      if (error != EWOULDBLOCK) fail("cannot lock the file", error);
      throw Error(Code::kOutputBusy, "another program is writing this file").file(path_);
    }
    // Between open and lock the other may have published or removed it.
    if (same_file(fd_, temporary_)) {
      if (::ftruncate(fd_, 0) != 0) fail("cannot empty what an interrupted run left", errno);
      return;
    }
    ::close(std::exchange(fd_, -1));
  }
  throw Error(Code::kOutputBusy, "other programs keep writing this file").file(path_);
}

void AtomicFile::fail(const char* what, int error, i64 offset) const {
  Error e(Code::kWriteFailed, cat(what, ": ", errno_text(error)));
  e.file(path_);
  if (offset >= 0) e.offset(offset);
  if (error == ENOSPC || error == EDQUOT) {
    if (bytes_ > 0) e.note(cat("the file takes ", bytes_, " bytes"));
    e.help("free some space, or write to another disk");
  }
  throw e;
}

void AtomicFile::reserve(i64 bytes) {
  bytes_ = bytes;
  if (bytes == 0) return;
  int error = ::fallocate(fd_, 0, 0, bytes) == 0 ? 0 : errno;
  if (error == EOPNOTSUPP || error == ENOSYS) error = ::ftruncate(fd_, bytes) == 0 ? 0 : errno;
  if (error != 0) fail("cannot reserve the space of the file", error);
}

void AtomicFile::write(i64 offset, std::span<const u8> bytes) {
  while (!bytes.empty()) {
    ssize_t n = ::pwrite(fd_, bytes.data(), bytes.size(), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) fail("writing failed", n == 0 ? EIO : errno, offset);
    bytes = bytes.subspan(static_cast<std::size_t>(n));
    offset += n;
  }
}

void AtomicFile::commit() {
  if (options_.durable && ::fsync(fd_) != 0) fail("making the file durable failed", errno);
  if (options_.replace) {
    check_clobber();
    if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail("publishing the file failed", errno);
  } else if (::renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, path_.c_str(), RENAME_NOREPLACE) != 0) {
    if (errno == EEXIST) check_clobber();
    // Not every file system can rename without replacing; the check is then all there is.
    if (errno != EINVAL && errno != ENOSYS) fail("publishing the file failed", errno);
    check_clobber();
    if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail("publishing the file failed", errno);
  }
  ::close(std::exchange(fd_, -1));
  if (int error = options_.durable ? sync_folder(folder_) : 0; error != 0)
    fail("making the file's name durable failed", error);
}

}  // namespace mckpt
