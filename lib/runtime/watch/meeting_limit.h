// MeetingLimit: how long the ranks of a job may take to meet, at its start and at its end. Before they share
// a board and after they have left it, nothing is known of a rank that was stopped or hangs, and MPI waits
// for it for ever: in MPI_Init, in the exchange that the board needs, and in MPI_Finalize. So each rank has a
// clock of its own for these times.
//
//   limit 30 s, 4 ranks, rank 2 never starts:   rank 0 reports and ends after 30 s, and the launcher ends the others;
//                                               rank 1 would have reported after 33 s, rank 3 after 39 s
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "core/base/int.h"
#include "runtime/watch/limits.h"

namespace mckpt::impl {

class Error;

// The clock of one rank. It runs in a thread of its own from construction to destruction.
class MeetingLimit {
 public:
  enum class At : u8 { kStart, kEnd };
  // From now on the ranks have limits.silence_s seconds to meet, more if they share cores. Then the error is
  // reported and the process ends, both in the thread of the clock. The clocks of the ranks run out one after
  // the other, so that one of them reports for all. `size`: 0 if the launcher does not give it.
  MeetingLimit(At at, const WatchLimits& limits, int rank, int size, Ends ends);
  ~MeetingLimit();  // the ranks have met: stops the clock
  MeetingLimit(const MeetingLimit&) = delete;
  MeetingLimit& operator=(const MeetingLimit&) = delete;

 private:
  void run();
  Error error() const;

  const At at_;
  const double limit_s_;
  const int rank_, size_;
  const Ends ends_;
  std::mutex mutex_;
  std::condition_variable met_;
  bool have_met_ = false;
  std::thread thread_;
};

}  // namespace mckpt::impl
