// Writes and reads the log of tasks that are done. A flush copies the bytes under the lock, then syncs the
// result and writes the copy: tasks that are added meanwhile, whose bytes may not be synced, are not in it.
#include "io/copy/task_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "core/base/error.h"
#include "io/file/file.h"
#include "io/file/retried.h"
#include "io/output/output_files.h"

namespace mckpt::impl {
namespace {

constexpr std::chrono::seconds kInterval{5};

}  // namespace

TaskLog::TaskLog(std::string path, i64 first, i64 end, OutputFiles& out, bool durable)
    : path_(std::move(path)),
      out_(out),
      durable_(durable),
      first_(first),
      was_done_(static_cast<std::size_t>(end - first)),
      done_(static_cast<std::size_t>(end - first)) {
  fd_ = retried([&] { return ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666); });
  if (fd_ < 0) throw Error(Code::kWriteFailed, cat("cannot open the log: ", errno_text(errno))).file(path_);
  // A run that ended early left a short log: the tasks that it lacks are not done.
  ssize_t n = retried([&] { return ::pread(fd_, done_.data(), done_.size(), first_); });
  std::fill(done_.begin() + std::max<ssize_t>(n, 0), done_.end(), u8{0});
  for (std::size_t t = 0; t < done_.size(); t++) was_done_[t] = done_[t] == 1;
}

TaskLog::~TaskLog() { ::close(fd_); }

void TaskLog::add(std::span<const i64> tasks) {
  bool due;
  {
    std::lock_guard lock(mutex_);
    for (i64 t : tasks) done_[t - first_] = 1;
    due = Clock::now() - written_ > kInterval;
    if (due) written_ = Clock::now();
  }
  if (due) flush();
}

void TaskLog::flush() {
  std::lock_guard writing(writing_);
  std::vector<u8> done;
  {
    std::lock_guard lock(mutex_);
    done = done_;
  }
  if (durable_) out_.sync();
  for (std::size_t at = 0; at < done.size();) {
    ssize_t n = ::pwrite(fd_, done.data() + at, done.size() - at, first_ + static_cast<i64>(at));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0)
      throw Error(Code::kWriteFailed, cat("cannot write the log: ", errno_text(n < 0 ? errno : EIO)))
          .file(path_);
    at += static_cast<std::size_t>(n);
  }
}

}  // namespace mckpt::impl
