// RankWatch: the watch over the ranks of a job. When a rank dies, fails or hangs, exactly one rank reports
// which and why, and all end with the same exit status. Without a watch the others would wait in a collective
// for ever.
//
//   the rank's thread       works | waits in "barrier" | throws: claims to be the teller, reports, tell(status)
//   the watch's thread      20 times a second: writes the rank's heartbeat on the board, and reads the heartbeats of
//                           the others: has one died? is one silent? no progress? has the teller reported?
//
// The ranks of one host share a board (runtime/watch/board.h) and watch each other without MPI, which may be
// what hangs. The rank that finds the cause first becomes the teller; there is one. Ranks of other hosts are
// ended by the launcher, which ends a job when one of its processes fails; docs/design.md describes what is
// not noticed across hosts. Limits grow with the number of ranks per core.
//
// A rank is ended by `Ends::exit` in the middle of its work: the files that it was writing are staged and not
// published.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "runtime/watch/judge.h"

namespace mckpt::impl {

// One for each process, made and destroyed by the thread of the command. Its own thread lives as long as the
// object.
class RankWatch {
 public:
  // Collective. `met` is called when all ranks have introduced themselves. Throws kRanksFailed.
  RankWatch(Comm& comm, const WatchLimits& limits, Ends ends, const std::function<void()>& met);
  // A rank whose watch is destroyed without leave() counts as dead for the others.
  ~RankWatch();
  RankWatch(const RankWatch&) = delete;
  RankWatch& operator=(const RankWatch&) = delete;

  // Ends every rank because of an error in this one, claimed before (Activity::claim) or not. `tell` reports
  // the error; it is called unless the error of another rank came first.
  [[noreturn]] void end(int status, bool may_follow, const std::function<void()>& tell);
  // Returns when every rank of the host has called it.
  void leave();
  // True if all ranks of the job share this board, so that exactly one of them reports an error.
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
  double telling_s_ = 0;  // the time since there is a teller

  bool claimed_ = false;  // this rank is the teller for an error of its own; of the command's thread
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stop_ = false, left_ = false;
  std::thread thread_;
};

}  // namespace mckpt::impl
