#include "runtime/watch/judge.h"

#include <algorithm>
#include <cmath>

namespace mckpt {
namespace {

std::string seconds(double s) { return cat(std::round(s * 10) / 10, " s"); }

std::string in_phase(const RankState& rank) { return cat("phase '", escaped(text_of(rank.beat.phase)), "'"); }

Error lost(std::string message, double limit_s, const char* flag) {
  Error e(Code::kRanksFailed, std::move(message));
  e.help(cat("the limit is ", seconds(limit_s), ", more where ranks share cores; ", flag, " sets it"));
  return e;
}

Error silent(const Team& team, int rank, const RankState& state, const WatchLimits& limits) {
  return lost(cat(team.name(rank), " does not answer: no heartbeat for ", seconds(state.silent_s),
                  ", last in ", in_phase(state)),
              limits.silence_s, "--rank-timeout");
}

Error still(const Team& team, int rank, const RankState& state, const WatchLimits& limits) {
  return lost(
      cat(team.name(rank), " hangs in ", in_phase(state), ": no progress for ", seconds(state.still_s)),
      limits.phase_s, "--phase-timeout");
}

Error all_wait(const Team& team, int rank, const RankState& state, const WatchLimits& limits) {
  return lost(cat("every rank waits for others, for ", seconds(state.still_s), "; ", team.name(rank),
                  " is behind, in ", escaped(text_of(state.beat.waiting)), " of ", in_phase(state)),
              limits.phase_s, "--phase-timeout");
}

}  // namespace

void RankState::hear(const WatchFrame& heard) {
  silent_s = 0;
  if (!(heard == beat)) still_s = 0;
  beat = heard;
}

Error rank_died(const Team& team, int rank) {
  Error e(Code::kRanksFailed, cat(team.name(rank), " died: it closed its connection without a word"));
  e.help("the launcher may say of what: a signal, or the system took it because memory ran out");
  return e;
}

std::optional<Error> judge(const Team& team, std::span<const RankState> ranks, const WatchLimits& limits) {
  int quiet = -1, stuck = -1, behind = -1;
  bool all_stand_still = true;
  for (int r = 0; r < team.size(); r++) {
    const RankState& rank = ranks[static_cast<std::size_t>(r)];
    if (rank.left) continue;
    if (rank.silent_s > limits.silence_s &&
        (quiet < 0 || rank.silent_s > ranks[static_cast<std::size_t>(quiet)].silent_s))
      quiet = r;
    bool stands_still = limits.phase_s > 0 && rank.still_s > limits.phase_s;
    all_stand_still &= stands_still;
    bool waits = rank.beat.waiting[0] != 0;
    if (stands_still && !waits &&
        (stuck < 0 || rank.still_s > ranks[static_cast<std::size_t>(stuck)].still_s))
      stuck = r;
    if (behind < 0 || rank.beat.calls < ranks[static_cast<std::size_t>(behind)].beat.calls) behind = r;
  }
  auto state = [&](int r) -> const RankState& { return ranks[static_cast<std::size_t>(r)]; };
  if (quiet >= 0) return silent(team, quiet, state(quiet), limits);
  if (stuck >= 0) return still(team, stuck, state(stuck), limits);
  if (all_stand_still && behind >= 0) return all_wait(team, behind, state(behind), limits);
  return {};
}

}  // namespace mckpt
