#include "runtime/watch/rank_watch.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "runtime/system/quiet_thread.h"
#include "runtime/watch/hub.h"
#include "runtime/watch/member.h"

namespace mckpt {
namespace {

std::unique_ptr<WatchRole> take_part(Comm& comm, WatchLimits limits, const std::function<void()>& met) {
  Team team = meet(comm);
  limits.silence_s *= team.ranks_per_core;
  limits.phase_s *= team.ranks_per_core;
  std::optional<Listener> listener;
  if (team.rank == 0) listener = listen_for_ranks(team.one_host);
  Invitation invitation = invite(comm, listener ? &*listener : nullptr);
  met();
  if (!listener) return std::make_unique<WatchMember>(team, limits, invitation);
  return std::make_unique<WatchHub>(team, limits, std::move(invitation), std::move(*listener));
}

}  // namespace

RankWatch::RankWatch(Comm& comm, const WatchLimits& limits, const std::function<void()>& met,
                     std::function<void(const Error&)> report)
    : report_(std::move(report)), leader_(comm.rank() == 0), wake_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  if (!wake_)
    throw Error(Code::kRanksFailed, cat("the watch over the ranks cannot begin: ", std::strerror(errno)));
  role_ = take_part(comm, limits, met);
  thread_ = quiet_thread([this] { run(); });
  // Nobody has anything to tell before everybody can hear it.
  comm.barrier();
}

RankWatch::~RankWatch() {
  if (!thread_.joinable()) return;
  wish([](Wishes& w) { w.stop = true; });
  thread_.join();
}

void RankWatch::wish(const std::function<void(Wishes&)>& change) {
  {
    std::lock_guard lock(mutex_);
    change(wishes_);
  }
  u64 one = 1;
  [[maybe_unused]] ssize_t n = write(wake_.fd(), &one, sizeof one);  // full is as good
}

void RankWatch::claim(int status, bool may_follow) {
  {
    std::lock_guard lock(mutex_);
    if (may_tell_) return;
  }
  wish([&](Wishes& w) { w.claim = {status, may_follow}; });
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return may_tell_; });
}

void RankWatch::end(int status, bool may_follow, const std::function<void()>& tell) {
  claim(status, may_follow);
  tell();
  wish([](Wishes& w) { w.told = true; });
  for (;;) pause();  // until the watch ends the process
}

void RankWatch::leave() {
  wish([](Wishes& w) { w.leave = true; });
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return left_; });
  }
  thread_.join();
}

void RankWatch::run() {
  try {
    do pass_on_wishes();
    while (!stop_ && carry_out(role_->round(wake_.fd())));
    role_.reset();
  } catch (const std::exception& e) {
    // The others see that this rank is gone; what they cannot see is why.
    Error cause(Code::kRanksFailed, cat("the watch over the ranks failed: ", escaped(e.what())));
    report_(cause);
    _exit(static_cast<int>(code_info(cause.code()).exit));
  }
}

void RankWatch::pass_on_wishes() {
  u64 times;
  [[maybe_unused]] ssize_t n = read(wake_.fd(), &times, sizeof times);
  Wishes wishes;
  {
    std::lock_guard lock(mutex_);
    wishes = std::exchange(wishes_, {});
  }
  if (wishes.claim) role_->claim(wishes.claim->first, wishes.claim->second);
  if (wishes.told) role_->told();
  if (wishes.leave) role_->leave();
  stop_ |= wishes.stop;
}

void RankWatch::set_last(std::function<void()> last) {
  std::lock_guard lock(last_mutex_);
  last_ = std::move(last);
}

void RankWatch::end_process(int status) {
  std::lock_guard lock(last_mutex_);
  if (last_ && (leader_ || reported_)) last_();
  _exit(status);
}

// Whether to go on.
bool RankWatch::carry_out(const WatchOrder& order) {
  switch (order.what) {
    case WatchOrder::kGoOn:
      return true;
    case WatchOrder::kReport:
      reported_ = true;
      if (order.cause) report_(*order.cause);
      role_->told();
      return true;
    case WatchOrder::kEnd:
      end_process(order.status);
    case WatchOrder::kTell:
    case WatchOrder::kLeave: {
      std::lock_guard lock(mutex_);
      bool leaves = order.what == WatchOrder::kLeave;
      (leaves ? left_ : may_tell_) = true;
      changed_.notify_all();
      return !leaves;
    }
  }
  return true;
}

}  // namespace mckpt
