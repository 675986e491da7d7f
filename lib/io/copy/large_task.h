// LargeTask: a task that is carried out slice by slice, by the thread that took it and by threads that have
// no task left. The threads take slices in order, and each slice has its own sums; the thread that took the
// task joins them:
//
//   thread A (took the task)   slices 0 1 2 3    5   7    9   waits for 8, joins sums, writes tails
//   thread B (helps)                          4    6    8
#pragma once

#include <condition_variable>
#include <exception>
#include <mutex>
#include <vector>

#include "core/base/int.h"
#include "io/copy/slices.h"

namespace mckpt::impl {

class CopyWorker;
struct CopyTask;

// The task outlives finish(); afterwards only has_slices() and carry_out() may be called, which find none
// left.
class LargeTask {
 public:
  LargeTask(const CopyTask& task, std::vector<Slice> slices);

  bool has_slices() const;  // that no thread took
  // Carries out slices until none is left. After an error no further slice is taken; finish() gets the error
  // of the lowest slice.
  void carry_out(CopyWorker& worker);
  // To be called by the thread that took the task, after carry_out(): waits for the slices of other threads,
  // ends the task and returns how many values became infinite in it; `sum`: of the task (io/copy/task_log.h).
  // Throws the error of the lowest slice, and what the job and the sink throw.
  i64 finish(CopyWorker& worker, u32& sum);

 private:
  std::vector<u32> sums_of_destinations() const;

  const CopyTask& task_;
  std::vector<Slice> slices_;
  std::vector<std::vector<u32>> sums_;  // by slice and window
  mutable std::mutex mutex_;
  std::condition_variable ended_;  // running_ is 0
  std::size_t next_ = 0;
  int running_ = 0;  // slices that threads are in
  i64 infinite_ = 0;
  std::exception_ptr error_;
  std::size_t failed_ = 0;  // the slice of the error
};

}  // namespace mckpt::impl
