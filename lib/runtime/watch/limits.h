// How long the ranks of a job wait for each other.
#pragma once

namespace mckpt {

// Where ranks share cores, both are as many times longer.
struct WatchLimits {
  double silence_s = 30;  // a rank whose watch is not heard for so long is lost; 0: nobody watches
  double phase_s = 1800;  // so long may a phase stand still; 0: for ever
};

}  // namespace mckpt
