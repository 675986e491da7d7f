// TaskLog: which tasks of a copy are done, stored beside the unfinished result so that a later run can
// resume. The log is a file of one byte for each task of the job, at the task's index; 1: done. Ranks share
// the file: each writes the bytes of its own tasks.
//
//   .done   01 01 01 00 01 00 00 00        tasks 0, 1, 2 and 4 are done; rank 0 has [0, 4), rank 1 has [4, 8)
//
// A task is in the log only when its bytes are as durable as the result has to be: with fsync, the files are
// synced before the log is written. The log itself is not synced; if it is lost, tasks are only repeated.
#pragma once

#include <chrono>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

class OutputFiles;

// The log of one rank. `out` outlives it. add() and flush() may be called from all threads.
class TaskLog {
 public:
  // Opens or creates the log at `path` for the tasks [first, end) of this process. `durable`: `out` is synced
  // before its tasks are written to the log. Throws kWriteFailed.
  TaskLog(std::string path, i64 first, i64 end, OutputFiles& out, bool durable);
  ~TaskLog();
  TaskLog(const TaskLog&) = delete;
  TaskLog& operator=(const TaskLog&) = delete;

  bool is_done(i64 task) const { return was_done_[task - first_]; }  // in an earlier run
  // Notes tasks as done, and writes the log if the last write was 5 seconds ago. Throws kWriteFailed.
  void add(std::span<const i64> tasks);
  // Writes the log now.
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
