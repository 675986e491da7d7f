// The clock that runs until the ranks have met. It counts with a WatchClock, so that a process that was
// stopped itself does not blame the others when it continues.
#include "runtime/watch/meeting_limit.h"

#include <algorithm>

#include "core/base/error.h"
#include "runtime/system/quiet_thread.h"
#include "runtime/watch/clock.h"

namespace mckpt::impl {
namespace {

constexpr double kStepSeconds = 0.1;
// When a rank ends, its launcher ends the others: a turn is as long as that takes. Ranks from 4 on have the
// same turn, so several of them may report.
constexpr double kTurnSeconds = 3;
constexpr int kMostTurns = 4;

// The hosts of the other ranks are not known yet: all ranks might share this one.
double ranks_per_core(int ranks) {
  return std::max(1.0, static_cast<double>(ranks) / std::max(1u, std::thread::hardware_concurrency()));
}

}  // namespace

MeetingLimit::MeetingLimit(At at, const WatchLimits& limits, int rank, int size, Ends ends)
    : at_(at),
      limit_s_(limits.silence_s * ranks_per_core(size)),
      rank_(rank),
      size_(size),
      ends_(std::move(ends)),
      thread_(quiet_thread([this] { run(); })) {}

MeetingLimit::~MeetingLimit() {
  {
    std::lock_guard lock(mutex_);
    have_met_ = true;
  }
  met_.notify_one();
  thread_.join();
}

// Nobody knows which rank is missing: not yet, or no longer.
Error MeetingLimit::error() const {
  Error e(
      Code::kRanksFailed,
      at_ == At::kStart
          ? "not all ranks of the job have started: at least one did not start, is stopped or hangs"
          : "all ranks have done their work, and not all of them leave the job: at least one is stopped or hangs");
  if (size_ > 0) e.expected(cat(counted(size_, "rank"), " within ", limit_s_, " s"));
  return e.found(cat("rank ", rank_, " still waits for the others"))
      .help("look for a stopped process of mckpt; `rank_timeout` gives slow hosts more time");
}

void MeetingLimit::run() {
  double end_s = limit_s_ + kTurnSeconds * std::min(rank_, kMostTurns);
  WatchClock clock(4 * kStepSeconds);
  {
    std::unique_lock lock(mutex_);
    for (double waited_s = 0; waited_s < end_s; waited_s += clock.tick())
      if (met_.wait_for(lock, std::chrono::duration<double>(kStepSeconds), [&] { return have_met_; })) return;
  }
  ends_.report(error());
  ends_.exit(static_cast<int>(code_info(Code::kRanksFailed).exit));
}

}  // namespace mckpt::impl
