// Two threads of a rank meet here. The thread of the command claims, ends and leaves; the thread of the watch
// looks at the board. They share `left_` and `stop_` under a mutex; everything between ranks is on the board.
#include "runtime/watch/rank_watch.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "runtime/comm/comm.h"
#include "runtime/system/quiet_thread.h"
#include "runtime/watch/clock.h"

namespace mckpt::impl {
namespace {

// How often the watch looks.
constexpr std::chrono::milliseconds kStep(50);

// The times below are for a host with a core for every rank. Open MPI, when a process fails, asks the others
// of its host to end after 2 seconds and kills them after 4; the processes of other hosts after 6 and 8.
//
// How long an error that may follow from another rank's error waits for that one: on one host for the board,
// on several hosts until the launcher has killed this rank.
constexpr double kFollowSeconds = 0.3, kFollowOtherHostSeconds = 12;
// With other hosts, the launcher may have killed the rank that died and will kill this one next: a death is
// reported only after this time.
constexpr double kDeathOtherHostSeconds = 0.5;
// How long the teller waits for the others to end.
constexpr double kGraceSeconds = 1;

void sleep_for(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

// The board of this host. The first rank of the host makes it and sends its id through the Comm. Collective
// over all ranks of the job.
Board board_of(Comm& comm, const Team& team) {
  std::optional<Board> made;
  std::optional<Error> failed;
  if (team.own == 0) try {
      made.emplace(Board::make(team.size()));
    } catch (const Error& e) {
      failed = e;
    }
  i64 mine = made ? made->id() : -1;
  std::vector<i64> ids(static_cast<std::size_t>(comm.size()));
  comm.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(ids)));
  if (failed) throw *failed;
  i64 id = ids[team.first_of_host];
  if (id < 0) throw Error(Code::kRanksFailed, cat(team.name(0), " cannot make shared memory for the watch"));
  return made ? std::move(*made) : Board::open(id, team.size());
}

int lost_status() { return static_cast<int>(code_info(Code::kRanksFailed).exit); }

}  // namespace

RankWatch::RankWatch(Comm& comm, const WatchLimits& limits, Ends ends, const std::function<void()>& met)
    : RankWatch(comm, limits, std::move(ends), meet(comm), met) {}

RankWatch::RankWatch(Comm& comm, WatchLimits limits, Ends ends, Team team, const std::function<void()>& met)
    : comm_(comm),
      limits_(std::move(limits)),
      ends_(std::move(ends)),
      team_(std::move(team)),
      board_(board_of(comm, team_)),
      states_(static_cast<std::size_t>(team_.size())),
      dead_s_(states_.size()) {
  limits_.silence_s *= team_.ranks_per_core;
  limits_.phase_s *= team_.ranks_per_core;
  met();
  comm_.activity().when_claimed([this](bool may_follow) { claim(may_follow); });
  thread_ = quiet_thread([this] { run(); });
  // No rank reports an error before all ranks have a watch.
  comm_.barrier();
}

RankWatch::~RankWatch() {
  comm_.activity().when_claimed({});
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void RankWatch::claim(bool may_follow) {
  if (claimed_) return;
  if (may_follow)
    sleep_for((team_.whole_job ? kFollowSeconds : kFollowOtherHostSeconds) * team_.ranks_per_core);
  if ((claimed_ = board_.become_teller(team_.own))) return;
  for (;;) pause();  // until the watch ends the process
}

void RankWatch::end(int status, bool may_follow, const std::function<void()>& tell) {
  claim(may_follow);
  tell();
  board_.tell(status);
  for (;;) pause();
}

void RankWatch::leave() {
  Waiting waiting(comm_.activity(), "leaving");
  board_.leave(team_.own);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return left_; });
}

// The watch's thread: while it lives, the rank is alive on the board.
void RankWatch::run() {
  board_.begin(team_.own);
  WatchClock clock(std::min(1.0, limits_.silence_s / 5));
  std::unique_lock lock(mutex_);
  while (!stop_ && !left_) {
    lock.unlock();
    board_.write(team_.own, beat_of(comm_.activity().now()));
    look(clock.tick());
    lock.lock();
    left_ = all_left();
    changed_.notify_all();
    if (!left_) changed_.wait_for(lock, kStep, [&] { return stop_; });
  }
}

void RankWatch::look(double passed_s) {
  for (int p = 0; p < team_.size(); p++) {
    states_[p].pass(passed_s);
    states_[p].hear(board_.read(p));
    if (board_.has_died(p)) dead_s_[p] += passed_s;
    states_[p].left = board_.has_left(p);
  }
  if (std::optional<int> status = board_.told()) end_process(*status);
  int teller = board_.teller();
  telling_s_ = teller < 0 ? 0 : telling_s_ + passed_s;
  if (telling_s_ > limits_.silence_s) board_.tell(lost_status());  // the teller is stuck
  if (teller == team_.own) return;
  std::optional<Error> found = cause();
  if (!found || !board_.become_teller(team_.own, teller)) return;
  ends_.report(*found);
  board_.tell(lost_status());
}

bool RankWatch::all_left() const {
  return std::all_of(states_.begin(), states_.end(), [](const RankState& s) { return s.left; });
}

// The error that this rank sees in the others. While there is a teller no other rank is blamed, but the
// teller itself is if it dies before it has reported.
std::optional<Error> RankWatch::cause() const {
  int teller = board_.teller();
  double patience_s = team_.whole_job ? 0 : kDeathOtherHostSeconds * team_.ranks_per_core;
  for (int p = 0; p < team_.size(); p++)
    if ((teller < 0 || teller == p) && dead_s_[p] > patience_s) return rank_died(team_, p, states_[p]);
  return teller >= 0 ? std::nullopt : judge(team_, states_, limits_);
}

void RankWatch::end_process(int status) {
  if (board_.teller() == team_.own) {
    auto others_live = [&] {
      for (int p = 0; p < team_.size(); p++)
        if (p != team_.own && !board_.has_left(p) && !board_.has_died(p)) return true;
      return false;
    };
    auto end = std::chrono::steady_clock::now() +
               std::chrono::duration<double>(kGraceSeconds * team_.ranks_per_core);
    while (others_live() && std::chrono::steady_clock::now() < end) sleep_for(0.01);
    comm_.activity().do_last();
    // Not every launcher ends the ranks of other hosts on its own.
    if (!team_.whole_job) comm_.abort(status);
  }
  ends_.exit(status);
  std::terminate();  // the program does not keep its word
}

}  // namespace mckpt::impl
