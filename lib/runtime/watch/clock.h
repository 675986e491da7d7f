// Time as a watch counts it: a process that was stopped, or a host that was suspended, blames nobody when it goes
// on.
#pragma once

#include <algorithm>
#include <chrono>

namespace mckpt::impl {

class WatchClock {
 public:
  // Between two calls of tick() at most `most_s` count.
  explicit WatchClock(double most_s) : most_s_(most_s) {}
  // Seconds since the last call, as far as they count.
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
