// Records size, times, inode and device of every source file, and compares them at every look and at the end.
//
// How a tick is waited for: the file's ctime is 12:00:00.500 and a tick takes 20 ms at most. A first look at
// 12:00:00.505 sleeps for 15 ms and looks again; a first look at 12:00:07 does not wait. ctimes of whole
// seconds come from file systems that count in seconds, with ticks of up to 2 s. There are at most 5 such
// waits.
#include "io/file/source_stamps.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cerrno>
#include <chrono>
#include <ctime>
#include <thread>

#include "core/base/error.h"
#include "io/file/file.h"
#include "io/file/open_options.h"

namespace mckpt::impl {
namespace {

constexpr i64 kSecond = 1'000'000'000;

FileStamp to_stamp(const struct stat& st) {
  auto ns = [](const timespec& t) { return t.tv_sec * kSecond + t.tv_nsec; };
  return {st.st_dev, st.st_ino, st.st_size, ns(st.st_mtim), ns(st.st_ctim)};
}

// The stamp now of the file that the path leads to, or of `fd` where the path is empty; nothing if there is
// no such file, or none that may be looked at.
std::optional<FileStamp> stamp_at(const std::string& path, int fd = AT_FDCWD) {
  struct statx now;
  // FORCE_SYNC asks a file server anew: its answer to the first look may still be cached.
  const int how = AT_STATX_FORCE_SYNC | (path.empty() ? AT_EMPTY_PATH : 0);
  if (::statx(fd, path.c_str(), how, STATX_BASIC_STATS, &now) == 0) {
    auto ns = [](const statx_timestamp& t) { return t.tv_sec * kSecond + t.tv_nsec; };
    return FileStamp{gnu_dev_makedev(now.stx_dev_major, now.stx_dev_minor), now.stx_ino,
                     static_cast<i64>(now.stx_size), ns(now.stx_mtime), ns(now.stx_ctime)};
  }
  struct stat st;  // where a sandbox does not know statx
  const int failed = path.empty() ? ::fstat(fd, &st) : ::stat(path.c_str(), &st);
  return failed == 0 ? std::optional(to_stamp(st)) : std::nullopt;
}

i64 now_ns() {
  timespec now;
  ::clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec * kSecond + now.tv_nsec;
}

// Linux counts in ticks of at most 10 ms (20 ms are waited for); file systems that store whole seconds count
// in steps of at most 2 s.
i64 tick_ns(const FileStamp& stamp) { return stamp.changed_ns % kSecond == 0 ? 2 * kSecond : kSecond / 50; }

// The stamp after the tick of the last change has ended. A change time in the future comes from another clock
// and is not waited for. A file that is written all the time is not waited for either: it will be reported as
// changed.
FileStamp settled(int fd, const std::string& path) {
  constexpr int kTries = 5;
  FileStamp stamp = stamp_of_open(fd, path);
  for (int i = 0; i < kTries; i++) {
    i64 left = stamp.changed_ns + tick_ns(stamp) - now_ns();
    if (left <= 0 || left > tick_ns(stamp)) break;
    std::this_thread::sleep_for(std::chrono::nanoseconds(left));
    stamp = stamp_of_open(fd, path);
  }
  return stamp;
}

[[noreturn]] void throw_changed(const std::string& path, const FileStamp& before,
                                const std::optional<FileStamp>& after) {
  Error e = source_changed(path);
  if (!after)
    e.found("no file under its name any more");
  else if (after->device != before.device || after->inode != before.inode)
    e.found("another file under its name");
  else if (after->bytes != before.bytes)
    e.expected(cat(before.bytes, " bytes")).found(cat(after->bytes, " bytes"));
  throw e;
}

}  // namespace

FileStamp stamp_of_open(int fd, const std::string& path) {
  struct stat st;
  if (::fstat(fd, &st) != 0) throw_open_failed(path, errno);
  return to_stamp(st);
}

FileStamp SourceStamps::look(int fd, const std::string& path) {
  std::unique_lock lock(mutex_);
  auto known = stamps_.find(path);
  if (known == stamps_.end()) {
    lock.unlock();
    FileStamp first = settled(fd, path);
    lock.lock();
    known = stamps_.emplace(path, first).first;
    if (known->second == first) return first;
  }
  FileStamp stamp = stamp_of_open(fd, path);
  if (stamp != known->second) throw_changed(path, known->second, stamp);
  return stamp;
}

std::string SourceStamps::first_changed() const {
  std::lock_guard lock(mutex_);
  std::string first;
  for (const auto& [path, stamp] : stamps_)
    if ((first.empty() || path < first) && stamp_at(path) != stamp) first = path;
  return first;
}

void SourceStamps::check_unchanged() const {
  std::string path = first_changed();
  if (path.empty()) return;
  std::lock_guard lock(mutex_);
  throw_changed(path, stamps_.at(path), stamp_at(path));
}

void check_stamp(int fd, const std::string& path, const FileStamp& before) {
  std::optional<FileStamp> now = stamp_at("", fd);
  if (now != before) throw_changed(path, before, now);
}

Error source_changed(const std::string& path) {
  return Error(Code::kReadFailed, "the file was changed while it was read")
      .file(path)
      .help(
          "run the command again when no program writes to the file; while a training run continues, name a finished iteration");
}

void check_unchanged(const OpenOptions& opening) {
  if (opening.stamps) opening.stamps->check_unchanged();
}

}  // namespace mckpt::impl
