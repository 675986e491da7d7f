// The judge: which rank is to blame when a job makes no progress. A pure function of what one rank has seen
// of the others, so that tests need no processes.
//
//   rank 0   waiting in "barrier", still for 1900 s, heartbeat 0.1 s ago
//   rank 1   phase "write", not waiting, still for 1850 s, heartbeat 0.1 s ago      -->  rank 1 hangs in "write"
//   rank 2   no heartbeat for 31 s                                                  -->  comes first: rank 2 is lost
#pragma once

#include <optional>
#include <span>

#include "core/base/error.h"
#include "runtime/watch/board.h"
#include "runtime/watch/limits.h"
#include "runtime/watch/team.h"

namespace mckpt::impl {

// The observations of a rank by this process so far.
struct RankState {
  double silent_s = 0;  // since its last heartbeat
  double still_s = 0;   // since its last progress
  bool left = false;    // the rank is done
  Beat beat;            // its last heartbeat

  void pass(double seconds) { silent_s += seconds, still_s += seconds; }
  void hear(const Beat& heard);
};

// The error about the rank that is silent for the longest time; else about a rank that makes no progress and
// does not wait; else, if all ranks of the job are known and all wait, about the rank with the fewest calls.
// A rank that waits while another one works is never blamed. Nothing while all is well.
std::optional<Error> judge(const Team& team, std::span<const RankState> ranks, const WatchLimits& limits);

// The error about a rank whose process ended without leaving the board.
Error rank_died(const Team& team, int place, const RankState& state);

}  // namespace mckpt::impl
