// Which rank is to blame when nothing goes on.
#pragma once

#include <optional>
#include <span>

#include "core/base/error.h"
#include "runtime/watch/board.h"
#include "runtime/watch/limits.h"
#include "runtime/watch/team.h"

namespace mckpt::impl {

// What is known of a rank.
struct RankState {
  double silent_s = 0;  // since its last heartbeat
  double still_s = 0;   // since its last progress
  bool left = false;    // it is done
  Beat beat;            // the last one

  void pass(double seconds) { silent_s += seconds, still_s += seconds; }
  void hear(const Beat& heard);
};

// The error of a rank that is silent; else of the one in whose phase nothing goes on; else, where all ranks of
// the job are known and wait for each other, of the one that is behind. Never of one that waits while another
// works. Nothing while all is well.
std::optional<Error> judge(const Team& team, std::span<const RankState> ranks, const WatchLimits& limits);

Error rank_died(const Team& team, int place, const RankState& state);

}  // namespace mckpt::impl
