// The watch over the ranks of a job: when one dies, fails or hangs, exactly one rank reports which and why, and
// all end with the same exit status. Without it the others would wait in a collective for ever.
//
//   the rank's thread       works | waits in "barrier" | throws: claims to be the teller, reports, tell(status)
//   the watch's thread      20 times a second: writes the rank's heartbeat on the board of its host, looks at
//                           the others': has one died? is one silent? does nothing go on? has the teller told?
//
// The ranks of one host share a board (runtime/watch/board.h) and watch each other, without MPI, which may be
// what hangs. Who finds the cause first becomes the teller; there is one. Ranks of other hosts are ended by
// the launcher, which ends a job when one of its processes fails; what is not noticed across hosts is said in
// docs/design.md. Limits grow with the number of ranks per core.
//
// A rank is ended by `Ends::exit` in whatever it was doing: what it was writing is staged and not published.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "runtime/watch/judge.h"

namespace mckpt::impl {

class RankWatch {
 public:
  // Collective. `met` is called when all ranks have introduced themselves. Throws kRanksFailed.
  RankWatch(Comm& comm, const WatchLimits& limits, Ends ends, const std::function<void()>& met);
  // A rank that goes without leave() has died, as far as the others know.
  ~RankWatch();
  RankWatch(const RankWatch&) = delete;
  RankWatch& operator=(const RankWatch&) = delete;

  // Ends every rank because of an error in this one, claimed before (Activity::claim) or not. `tell` reports
  // the error; it is called unless another rank's came first.
  [[noreturn]] void end(int status, bool may_follow, const std::function<void()>& tell);
  // Returns when every rank of the host has called it.
  void leave();
  // All ranks of the job are on this host, so that one of them alone reports an error.
  bool whole_job() const { return team_.whole_job; }

 private:
  RankWatch(Comm& comm, WatchLimits limits, Ends ends, Team team, const std::function<void()>& met);
  void claim(bool may_follow);
  void run();
  void look(double passed_s);
  bool all_left() const;
  std::optional<Error> cause() const;
  [[noreturn]] void end_process(int status);

  Comm& comm_;
  WatchLimits limits_;
  const Ends ends_;
  const Team team_;
  Board board_;
  std::vector<RankState> states_;  // by place; of the watch's thread
  std::vector<double> dead_s_;
  double telling_s_ = 0;  // since there is a teller

  bool claimed_ = false;  // by the thread of the command, which is to report its error
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stop_ = false, left_ = false;
  std::thread thread_;
};

}  // namespace mckpt::impl
