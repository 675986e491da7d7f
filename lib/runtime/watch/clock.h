// Time as a watch counts it: a process that was stopped, or a host that was suspended, does not blame the
// others for the time in which it did not look itself.
//
//   ticks at 0.0, 0.1, 0.2 s, then the host sleeps, then at 3600 s, with most_s = 1     counted: 0.1 + 0.1 + 1 s
#pragma once

#include <algorithm>
#include <chrono>

namespace mckpt::impl {

// Belongs to one thread.
class WatchClock {
 public:
  // At most `most_s` seconds count of the time between two calls of tick().
  explicit WatchClock(double most_s) : most_s_(most_s) {}
  // The seconds since the last call, at most `most_s`.
  double tick() {
    auto now = std::chrono::steady_clock::now();
    double passed = std::chrono::duration<double>(now - last_).count();
    last_ = now;
    return std::min(passed, most_s_);
  }

 private:
  double most_s_;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

}  // namespace mckpt::impl
