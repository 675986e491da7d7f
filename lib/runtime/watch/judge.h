// Which rank is to blame when something stands still.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "runtime/watch/limits.h"
#include "runtime/watch/team.h"

namespace mckpt {

// What is known of a rank. Times count only while the one who watches was awake itself: a host that was
// suspended accuses nobody when it goes on.
struct RankState {
  double silent_s = 0;  // since it was last heard
  double still_s = 0;   // since it last told of progress
  bool left = false;    // it is done
  WatchFrame beat;      // the last one

  void hear(const WatchFrame& heard);
};

// The rank that is silent; else the one in whose phase nothing goes on; else, if all wait for each other, the
// one that is behind. Nothing while all is well.
std::optional<Error> judge(const Team& team, std::span<const RankState> ranks, const WatchLimits& limits);

// The error that a rank died, which its connection tells.
Error rank_died(const Team& team, int rank);

}  // namespace mckpt
