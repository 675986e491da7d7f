// How long the ranks of a job wait for each other, and what the program does when one is lost.
#pragma once

#include <functional>

#include "core/base/error.h"

namespace mckpt::impl {

// Times in seconds. If ranks share cores, both times are multiplied by the number of ranks per core.
struct WatchLimits {
  double silence_s = 30;  // a rank without a heartbeat for so long is lost; 0: there is no watch
  double phase_s = 1800;  // a rank without progress for so long is lost; 0: never
};

// The two actions of the program that the watch needs. Both are called in a thread of the watch.
struct Ends {
  std::function<void(const Error&)> report;  // of a cause that was found from outside; in one rank, once
  std::function<void(int status)> exit;      // ends the process, without returning
};

}  // namespace mckpt::impl
