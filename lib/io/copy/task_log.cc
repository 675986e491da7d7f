// Writes and reads the log of tasks that are done. A flush copies the bytes under the lock, then syncs the
// result and writes the copy: tasks that are added meanwhile, whose bytes may not be synced, are not in it.
#include "io/copy/task_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "core/base/error.h"
#include "io/file/crc32.h"
#include "io/file/file.h"
#include "io/file/retried.h"
#include "io/output/output_files.h"

namespace mckpt::impl {
namespace {

constexpr std::chrono::seconds kInterval{5};
constexpr u32 kMark = 0x32676f4c;

template <typename T>
std::span<const u8> bytes_of(const T* data, std::size_t count) {
  return {reinterpret_cast<const u8*>(data), count * sizeof(T)};
}

}  // namespace

u32 sum_of_sums(std::span<const u32> sums) { return crc32(0, bytes_of(sums.data(), sums.size())); }

TaskLog::Entry TaskLog::entry_of(const DoneTask& done) {
  const u64 task = static_cast<u64>(done.task);
  const u32 checked[] = {kMark, done.written, done.stated, static_cast<u32>(task),
                         static_cast<u32>(task >> 32)};
  return {kMark, done.written, done.stated, sum_of_sums(checked)};
}

TaskLog::TaskLog(std::string path, i64 first, i64 end, OutputFiles& out, bool durable)
    : path_(std::move(path)),
      out_(out),
      durable_(durable),
      first_(first),
      was_done_(static_cast<std::size_t>(end - first)),
      entries_(static_cast<std::size_t>(end - first)) {
  fd_ = retried(
      [&] { return ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0644); });
  if (fd_ < 0) throw Error(Code::kWriteFailed, cat("cannot open the log: ", errno_text(errno))).file(path_);
  // A run that ended early left a short log: the tasks that it lacks are not done.
  const i64 begin = first_ * static_cast<i64>(sizeof(Entry));
  for (std::size_t at = 0, all = entries_.size() * sizeof(Entry); at < all;) {
    u8* to = reinterpret_cast<u8*>(entries_.data()) + at;
    ssize_t n = retried([&] { return ::pread(fd_, to, all - at, begin + static_cast<i64>(at)); });
    if (n <= 0) break;
    at += static_cast<std::size_t>(n);
  }
  for (i64 t = first_; t < end; t++) {
    Entry& found = entries_[t - first_];
    const Entry right = entry_of({t, found.written, found.stated});
    was_done_[t - first_] = found.mark == right.mark && found.check == right.check;
    if (!was_done_[t - first_]) found = {};
  }
}

TaskLog::~TaskLog() { ::close(fd_); }

DoneTask TaskLog::done(i64 task) const {
  const Entry& entry = entries_[task - first_];
  return {task, entry.written, entry.stated};
}

void TaskLog::forget(i64 task) {
  was_done_[task - first_] = false;
  entries_[task - first_] = {};
}

void TaskLog::add(std::span<const DoneTask> tasks) {
  bool due;
  {
    std::lock_guard lock(mutex_);
    for (const DoneTask& done : tasks) entries_[done.task - first_] = entry_of(done);
    due = Clock::now() - written_ > kInterval;
    if (due) written_ = Clock::now();
  }
  if (due) flush();
}

void TaskLog::flush() {
  std::lock_guard writing(writing_);
  std::vector<Entry> entries;
  {
    std::lock_guard lock(mutex_);
    entries = entries_;
  }
  if (durable_) out_.sync();
  std::span<const u8> bytes = bytes_of(entries.data(), entries.size());
  for (i64 at = first_ * static_cast<i64>(sizeof(Entry)); !bytes.empty();) {
    ssize_t n = retried([&] { return ::pwrite(fd_, bytes.data(), bytes.size(), at); });
    if (n <= 0)
      throw Error(Code::kWriteFailed, cat("cannot write the log: ", errno_text(n < 0 ? errno : EIO)))
          .file(path_);
    bytes = bytes.subspan(static_cast<std::size_t>(n)), at += n;
  }
}

}  // namespace mckpt::impl
