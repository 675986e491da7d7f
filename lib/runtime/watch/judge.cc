// The verdicts of the watch, in the order in which they count: silent, still, all wait. If several ranks are
// over their limits, the one that is so for the longest time is named, because the others may be its
// consequences.
#include "runtime/watch/judge.h"
#include "core/base/error.h"

#include <algorithm>
#include <cmath>

namespace mckpt::impl {
namespace {

// "30 s", "0.5 s".
std::string seconds(double s) { return cat(std::round(s * 10) / 10, " s"); }

std::string in_phase(const RankState& rank) { return cat("phase '", escaped(rank.beat.phase.data()), "'"); }

// kRanksFailed, with the limit and the setting that changes it.
Error lost(std::string message, double limit_s, const char* setting) {
  Error e(Code::kRanksFailed, std::move(message));
  return e.help(cat("the limit is ", seconds(limit_s), ", or more where ranks share cores; `", setting,
                    "` sets this limit"));
}

Error silent(const Team& team, int place, const RankState& state, const WatchLimits& limits) {
  return lost(cat(team.name(place), " does not answer: no heartbeat for ", seconds(state.silent_s),
                  ", last in ", in_phase(state)),
              limits.silence_s, "rank_timeout");
}

Error still(const Team& team, int place, const RankState& state, const WatchLimits& limits) {
  return lost(
      cat(team.name(place), " hangs in ", in_phase(state), ": no progress for ", seconds(state.still_s)),
      limits.phase_s, "phase_timeout");
}

Error all_wait(const Team& team, int place, const RankState& state, const WatchLimits& limits) {
  return lost(
      cat("every rank has waited for other ranks for ", seconds(state.still_s), "; ", team.name(place),
          " is behind, in ", escaped(state.beat.waiting.data()), " of ", in_phase(state)),
      limits.phase_s, "phase_timeout");
}

}  // namespace

// Only a new heartbeat counts; progress is a heartbeat that differs in activity.
void RankState::hear(const Beat& heard) {
  if (heard.number == beat.number) return;
  silent_s = 0;
  if (!heard.same_activity(beat)) still_s = 0;
  beat = heard;
}

Error rank_died(const Team& team, int place, const RankState& state) {
  Error e(Code::kRanksFailed,
          cat(team.name(place), " died: its process ended without a message, in ", in_phase(state)));
  return e.help("the launcher may say why: a signal, or the system ended the process because memory ran out");
}

std::optional<Error> judge(const Team& team, std::span<const RankState> ranks, const WatchLimits& limits) {
  int quiet = -1, stuck = -1, behind = -1;
  bool all_stand_still = true;
  for (int r = 0; r < team.size(); r++) {
    const RankState& rank = ranks[r];
    if (rank.left) continue;
    if (rank.silent_s > limits.silence_s && (quiet < 0 || rank.silent_s > ranks[quiet].silent_s)) quiet = r;
    bool stands_still = limits.phase_s > 0 && rank.still_s > limits.phase_s;
    all_stand_still &= stands_still;
    bool waits = rank.beat.waiting[0] != 0;
    if (stands_still && !waits && (stuck < 0 || rank.still_s > ranks[stuck].still_s)) stuck = r;
    if (behind < 0 || rank.beat.calls < ranks[behind].beat.calls) behind = r;
  }
  if (quiet >= 0) return silent(team, quiet, ranks[quiet], limits);
  if (stuck >= 0) return still(team, stuck, ranks[stuck], limits);
  // The work of other hosts' ranks is not known here: the ranks of this host may wait for a slow one of them.
  if (team.whole_job && all_stand_still && behind >= 0) return all_wait(team, behind, ranks[behind], limits);
  return {};
}

}  // namespace mckpt::impl
