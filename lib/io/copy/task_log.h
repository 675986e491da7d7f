// TaskLog: which tasks of a copy are done, stored beside the unfinished result so that a later run can
// resume. The log is a file with an entry of 16 bytes for each task of the job, at the task's index. Ranks
// share the file: each writes the entries of its own tasks.
//
//   .done   mark | sum of what was written | sum of what the source states | sum of the entry and its index
//           ...                                             rank 0 has tasks [0, 4), rank 1 has [4, 8)
//
// Something that is not an entry, or the entry of another task, is a task that is not done. So is a task
// whose bytes in the unfinished result do not have the sum: who resumes compares (io/copy/done_tasks.h).
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

// A task that is done, with the sums by which a later run knows that what it finds is what was written.
struct DoneTask {
  i64 task = 0;
  u32 written = 0;  // of the CRC-32s of the data of its destinations (sum_of_sums)
  u32 stated = 0;   // of the checksums that the source has of what the task read
};

// One sum of several. An empty list has the sum 0.
u32 sum_of_sums(std::span<const u32> sums);

// The log of one rank. `out` outlives it. add() and flush() may be called from all threads.
class TaskLog {
 public:
  // Opens or creates the log at `path` for the tasks [first, end) of this process. `durable`: `out` is synced
  // before its tasks are written to the log. Throws kWriteFailed.
  TaskLog(std::string path, i64 first, i64 end, OutputFiles& out, bool durable);
  ~TaskLog();
  TaskLog(const TaskLog&) = delete;
  TaskLog& operator=(const TaskLog&) = delete;

  // Done in an earlier run.
  bool is_done(i64 task) const { return was_done_[task - first_]; }
  // The sums that the earlier run wrote down. pre: is_done(task).
  DoneTask done(i64 task) const;
  // The task is not done after all. Before the copy begins.
  void forget(i64 task);
  // Notes tasks as done, and writes the log if the last write was 5 seconds ago. Throws kWriteFailed.
  void add(std::span<const DoneTask> tasks);
  // Writes the log now.
  void flush();

 private:
  using Clock = std::chrono::steady_clock;
  struct Entry {  // as in the file
    u32 mark = 0, written = 0, stated = 0, check = 0;
  };
  static Entry entry_of(const DoneTask& done);

  std::string path_;
  OutputFiles& out_;
  bool durable_;
  i64 first_;
  int fd_ = -1;
  std::vector<bool> was_done_;
  std::mutex mutex_, writing_;
  std::vector<Entry> entries_;
  Clock::time_point written_ = Clock::now();
};

}  // namespace mckpt::impl
