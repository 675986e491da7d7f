// The watch over the ranks of a job: when one dies, fails or hangs, exactly one rank tells which and why, and
// all end with the same status. Without it the others would wait in a collective for ever.
//
// Each rank has a thread that speaks to rank 0 over TCP, without MPI, and says at least ten times within the
// limit that it lives and what it is at (runtime/watch/activity.h). Rank 0 finds who is to blame: who is silent,
// whose connection closed, in whose phase nothing goes on, or who has an error to tell; a rank that the
// others wait for, never one that waits. The death of rank 0 is told by one of the others. Limits grow with
// the number of ranks per core.
//
// How a rank ends is _exit() in whatever it was doing: what it was writing is staged and not published.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "runtime/watch/role.h"

namespace mckpt {

class RankWatch {
 public:
  // Every rank of the Comm, which has more than one. `met` is called when all have exchanged their addresses.
  // `report` reports a cause that was found from outside; it is called in the watch's thread, in one rank, at
  // most once. Throws kRanksFailed.
  RankWatch(Comm& comm, const WatchLimits& limits, const std::function<void()>& met,
            std::function<void(const Error&)> report);
  // A rank that goes without leave() has died, as far as the others know.
  ~RankWatch();
  RankWatch(const RankWatch&) = delete;
  RankWatch& operator=(const RankWatch&) = delete;

  // Returns when an error of this rank is the one to tell; while it waits, another rank's may end the
  // process. `may_follow` says that the error may be what another rank's end looks like from here. Whoever
  // calls it before he gives up what others can see is not overtaken by what they then make of that.
  void claim(int status, bool may_follow);
  // Ends every rank because of an error in this one, claimed or not. `tell` is called where that is the first
  // there is.
  [[noreturn]] void end(int status, bool may_follow, const std::function<void()>& tell);
  // Returns when every rank has called it.
  void leave();
  // What is to be done when all ranks are ended because of one, behind everything else, in the watch's
  // thread: by rank 0, which ends last, and where that is the lost one by the rank that tells so. Empty:
  // nothing.
  void set_last(std::function<void()> last);

 private:
  struct Wishes {  // of the thread that runs the command
    std::optional<std::pair<int, bool>> claim;
    bool told = false, leave = false, stop = false;
  };

  void run();
  bool carry_out(const WatchOrder& order);
  [[noreturn]] void end_process(int status);
  void pass_on_wishes();
  void wish(const std::function<void(Wishes&)>& change);

  std::function<void(const Error&)> report_;
  const bool leader_;
  bool reported_ = false;
  std::unique_ptr<WatchRole> role_;
  Socket wake_;  // an eventfd
  std::mutex mutex_;
  std::condition_variable changed_;
  Wishes wishes_;
  bool stop_ = false, may_tell_ = false, left_ = false;
  std::mutex last_mutex_;  // whoever changes it waits until it was carried out
  std::function<void()> last_;
  std::thread thread_;
};

}  // namespace mckpt
