// TaskLog: the tasks of a copy that are done, stored beside the unfinished result so that a later run can
// resume. A task is in the log only when its bytes are as durable as the result has to be.
#pragma once

#include <chrono>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

class OutputFiles;

class TaskLog {
 public:
  // Opens the log at `path`, or makes it, for the tasks [first, end) that are this process's. `durable`:
  // `out` is made durable before its tasks are noted.
  TaskLog(std::string path, i64 first, i64 end, OutputFiles& out, bool durable);
  ~TaskLog();
  TaskLog(const TaskLog&) = delete;
  TaskLog& operator=(const TaskLog&) = delete;

  bool is_done(i64 task) const {
    return was_done_[static_cast<std::size_t>(task - first_)];
  }  // by an earlier run
  // Thread-safe; writes the log now and then.
  void add(std::span<const i64> tasks);
  void flush();

 private:
  using Clock = std::chrono::steady_clock;

  std::string path_;
  OutputFiles& out_;
  bool durable_;
  i64 first_;
  int fd_ = -1;
  std::vector<bool> was_done_;
  std::mutex mutex_, writing_;
  std::vector<u8> done_;  // one byte a task, as in the file
  Clock::time_point written_ = Clock::now();
};

}  // namespace mckpt::impl
