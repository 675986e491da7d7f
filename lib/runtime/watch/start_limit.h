// How long the ranks of a job may take to meet. Before they share a board nothing is known of a rank that was
// stopped or hangs, and MPI waits for it for ever: in MPI_Init, and in the exchange that the board needs. So each
// rank has a clock of its own for that time.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "runtime/watch/limits.h"

namespace mckpt::impl {

class Error;

class StartLimit {
 public:
  // From now on the ranks have limits.silence_s to meet, longer where they share cores. Then the error is
  // reported and the process ends, both in a thread of its own. The ranks' clocks run out one after the other,
  // so that one of them reports for all. `size` is 0 where the launcher does not say it.
  StartLimit(const WatchLimits& limits, int rank, int size, Ends ends);
  ~StartLimit();  // they have met
  StartLimit(const StartLimit&) = delete;
  StartLimit& operator=(const StartLimit&) = delete;

 private:
  void run();
  Error error() const;

  const double limit_s_;
  const int rank_, size_;
  const Ends ends_;
  std::mutex mutex_;
  std::condition_variable met_;
  bool have_met_ = false;
  std::thread thread_;
};

}  // namespace mckpt::impl
