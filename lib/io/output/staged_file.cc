// Makes a file under a hidden name and publishes it: lock, check, fsync, rename, remove the hidden folder.
//
// Three races are handled. The lock holder may publish and remove the folder between our open and our lock:
// so after locking, the path must still lead to what was opened, or the loop starts again. Somebody may
// create the file after our check: without `replace`, the rename is one that never replaces
// (RENAME_NOREPLACE). And where a file system lacks that rename, the check directly before a plain rename is
// all there is.
#include "io/output/staged_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <thread>
#include <utility>

#include "core/base/error.h"
#include "io/file/file.h"
#include "io/file/place.h"
#include "io/file/retried.h"
#include "io/output/output_files.h"
#include "io/output/staged_content.h"

namespace mckpt::impl {
namespace {

void check_clobber(const std::string& path, bool replace) {
  struct stat st;
  if (::lstat(path.c_str(), &st) != 0) return;
  bool file = S_ISREG(st.st_mode);
  if (replace && file) return;
  Error e(Code::kOutputExists,
          file ? "the output file exists already" : "something other than a file has the name of the output");
  e.file(path).help(file ? "choose another name, or replace it with `overwrite`" : "choose another name");
  throw e;
}

// Something of the user's that has the name of the hidden folder stays as it is.
void refuse_foreign_staging(const std::string& staging) {
  struct stat st;
  if (::lstat(staging.c_str(), &st) != 0 || S_ISDIR(st.st_mode)) return;
  throw Error(Code::kOutputExists, "the result is made in a hidden folder, whose name a file or a link has")
      .file(staging)
      .help("move it away, or choose another name for the result");
}

// The last part of a path, which is the name of the file.
std::string name_of(const std::string& path) {
  std::string name = path.substr(path.rfind('/') + 1);
  if (name.empty() || name == "." || name == "..")
    throw Error(Code::kWriteFailed, "this is not the name of a file")
        .file(path)
        .found(path.empty() ? "an empty name" : escaped(path, 4096));
  return name;
}

}  // namespace

void StagedFile::check(const std::string& path, Options options, i64 bytes) {
  name_of(path);
  check_clobber(path, options.replace);
  refuse_foreign_staging(staging_path(path));
  check_room(path, bytes, 1);
}

std::string StagedFile::staging_path(const std::string& path) {
  return cat(parent_folder(path), "/.", name_of(path), kStagingSuffix);
}

std::string StagedFile::staged_name(const std::string& path) { return name_of(path); }

StagedFile::StagedFile(std::string path, Options options)
    : path_(std::move(path)), folder_(parent_folder(path_)), name_(name_of(path_)), options_(options) {
  staging_ = staging_path(path_);
  check_clobber(path_, options_.replace);
  if (options_.make_folders)
    if (int error = make_folders(folder_, options_.durable); error != 0)
      fail("cannot create the parent folder", error);
  open_staging();
}

StagedFile::~StagedFile() {
  if (fd_ >= 0) remove_staging();
}

int StagedFile::try_lock() {
  if (int error = HostLock::is_needed(path_) ? hosts_.take(path_) : 0; error != 0) return error;
  return retried([&] { return ::flock(fd_, LOCK_EX | LOCK_NB); }) == 0 ? 0 : errno;
}

// Waits in steps of 5 ms for up to options_.wait: another program needs only a moment to write a small file,
// such as a tracker. False with errno if the lock was not obtained.
bool StagedFile::lock() {
  for (auto until = std::chrono::steady_clock::now() + options_.wait;;) {
    errno = try_lock();
    if (errno == 0) return true;
    if (errno != EWOULDBLOCK || std::chrono::steady_clock::now() >= until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

// Makes or takes over the hidden folder, and empties it. A folder that a living program has locked is
// refused.
void StagedFile::open_staging() {
  // Each attempt may find that another program published and removed the folder between open and lock.
  for (int attempt = 0; attempt < 1000; attempt++) {
    const bool made = ::mkdir(staging_.c_str(), 0777) == 0;
    if (!made && errno != EEXIST) fail("cannot create the file", errno);
    fd_ = retried([&] { return ::open(staging_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW); });
    if (fd_ < 0 && errno == ENOENT) continue;  // its owner has just removed it
    if (fd_ < 0 && (errno == ENOTDIR || errno == ELOOP)) refuse_foreign_staging(staging_);
    if (fd_ < 0) fail("cannot open the folder in which the file is made", errno);
    if (!lock()) {
      int error = errno;
      ::close(std::exchange(fd_, -1));
      if (error != EWOULDBLOCK) fail("cannot lock the folder in which the file is made", error);
      throw Error(Code::kOutputBusy, "another program is writing this file").file(path_);
    }
    if (leads_to(fd_, staging_)) {
      if (!made && !may_use_staging()) continue;
      if (::unlinkat(fd_, name_.c_str(), 0) == 0 || errno == ENOENT) return;
      int error = errno;
      ::close(std::exchange(fd_, -1));
      fail("cannot remove the unfinished file of an interrupted run", error);
    }
    ::close(std::exchange(fd_, -1));
  }
  throw Error(Code::kOutputBusy, "other programs keep writing this file").file(path_);
}

// False: the folder was one of others, and is gone. Throws if it cannot be removed.
bool StagedFile::may_use_staging() {
  try {
    refuse_of_others(fd_, staging_);
    return true;
  } catch (...) {
    ::unlinkat(fd_, name_.c_str(), 0);
    const bool gone = ::rmdir(staging_.c_str()) == 0;
    ::close(std::exchange(fd_, -1));
    if (!gone) throw;
    return false;
  }
}

void StagedFile::remove_staging() {
  ::unlinkat(fd_, name_.c_str(), 0);
  ::rmdir(staging_.c_str());
  ::close(std::exchange(fd_, -1));
  hosts_.let_go();
}

void StagedFile::fail(std::string_view what, int error) const {
  throw Error(Code::kWriteFailed, cat(what, ": ", errno_text(error))).file(path_);
}

void StagedFile::rename_into_place() const {
  if (options_.replace) {
    check_clobber(path_, true);
  } else if (::renameat2(fd_, name_.c_str(), AT_FDCWD, path_.c_str(), RENAME_NOREPLACE) == 0) {
    return;
  } else {
    int error = errno;
    check_clobber(path_, false);
    // Not every file system can rename without replacing.
    if (error != EINVAL && error != ENOSYS) fail("publishing the file failed", error);
  }
  if (::renameat(fd_, name_.c_str(), AT_FDCWD, path_.c_str()) != 0) fail("publishing the file failed", errno);
}

void StagedFile::publish(OutputFiles& files) {
  if (options_.durable) files.sync();
  rename_into_place();
  remove_staging();
  if (int error = options_.durable ? sync_folder(folder_) : 0; error != 0)
    fail(cat("the result is published as ", escaped(path_, 4096), "; making its name durable failed"), error);
}

}  // namespace mckpt::impl
