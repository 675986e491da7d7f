// One rank's part in the watch: rank 0 is the hub that all others are connected to (watch_hub), the others
// are its members (watch_member). A part is carried out by one thread, round by round; what it cannot do
// itself it orders from that thread's owner (rank_watch).
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

#include "runtime/watch/judge.h"

namespace mckpt {

struct WatchOrder {
  enum What {
    kGoOn,
    kReport,  // tell `cause`, which nobody else tells, then call told()
    kTell,    // the error of the last claim() is the cause: let it be told, then call told()
    kEnd,     // end the process with `status`
    kLeave,   // every rank has left: nothing is watched any more
  };
  What what = kGoOn;
  int status = 0;
  std::optional<Error> cause = {};
};

class WatchRole {
 public:
  virtual ~WatchRole() = default;
  // An error of this rank, which it wants to tell and then end with that status. `may_follow`: it may be
  // what the end of another rank looks like from here, so that gets some time to show.
  virtual void claim(int status, bool may_follow) = 0;
  virtual void told() = 0;
  virtual void leave() = 0;
  // Waits for news, or until a beat is due, or `wake_fd` is readable; then does what there is to do.
  virtual WatchOrder round(int wake_fd) = 0;
};

// Time as a watch counts it: while it was not asleep itself.
class WatchClock {
 public:
  explicit WatchClock(double step_s) : step_s_(step_s) {}
  double step_s() const { return step_s_; }
  double longest_s() const { return longest_s_; }  // between two calls, asleep or not
  // Seconds since the last call, as far as they count.
  double tick() {
    auto now = std::chrono::steady_clock::now();
    double passed = std::chrono::duration<double>(now - last_).count();
    last_ = now;
    longest_s_ = std::max(longest_s_, passed);
    return std::min(passed, 2 * step_s_);
  }

 private:
  double step_s_, longest_s_ = 0;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

// How long an error that may follow from another waits for that, on a host with a core for every rank.
inline constexpr double kWatchFollowSeconds = 0.3;
// How long rank 0 waits for the others to end, likewise.
inline constexpr double kWatchGraceSeconds = 1;
// How long those whom rank 0 has left keep still, likewise: the first that ends has the launcher end the
// others, and the deputy, which may notice later than they do, would not get to tell why.
inline constexpr double kWatchAloneSeconds = 3;

// A beat every tenth of the shorter limit, but not more often than is of use.
inline double beat_seconds(const WatchLimits& limits) {
  double shortest = limits.phase_s > 0 ? std::min(limits.silence_s, limits.phase_s) : limits.silence_s;
  return std::clamp(shortest / 10, 0.02, 1.0);
}

// For poll(), which would not wait at all for 0.
inline int milliseconds(double s) { return std::max(1, static_cast<int>(s * 1000)); }

}  // namespace mckpt
