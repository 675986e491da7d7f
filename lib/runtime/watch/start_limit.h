// How long the ranks of a job may take to meet. Before the watch has everybody's address nothing can be heard
// of a rank that was stopped or hangs, and MPI waits for it for ever: in MPI_Init, and in the exchange of the
// addresses. So each rank has a clock of its own for that time.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "core/base/error.h"
#include "runtime/watch/limits.h"

namespace mckpt {

class StartLimit {
 public:
  // From now on the ranks have limits.silence_s to meet, longer where they share cores. Then the process ends
  // with the status of kRanksFailed, and `report` is called first, in a thread of its own. The ranks' clocks
  // run out one after the other, so that one of them reports for all.
  StartLimit(const WatchLimits& limits, int rank, int size, std::function<void(const Error&)> report);
  ~StartLimit();  // they have met
  StartLimit(const StartLimit&) = delete;
  StartLimit& operator=(const StartLimit&) = delete;

 private:
  void run();

  const double limit_s_;
  const int rank_, size_;
  std::function<void(const Error&)> report_;
  std::mutex mutex_;
  std::condition_variable met_;
  bool have_met_ = false;
  std::thread thread_;
};

}  // namespace mckpt
