// How long the ranks of a job wait for each other, and what the program does when one is lost.
#pragma once

#include <functional>

namespace mckpt::impl {

class Error;

// Where ranks share cores, both times are as many times longer.
struct WatchLimits {
  double silence_s = 30;  // a rank without a heartbeat for so long is lost; 0: nobody watches
  double phase_s = 1800;  // a rank without progress for so long is lost; 0: never
};

// Both are called in a thread of the watch.
struct Ends {
  std::function<void(const Error&)> report;  // of a cause that was found from outside; in one rank, once
  std::function<void(int status)> exit;      // ends the process, without returning
};

}  // namespace mckpt::impl
