#include "runtime/watch/member.h"

#include <poll.h>

#include "runtime/watch/call.h"

namespace mckpt {

WatchMember::WatchMember(Team team, WatchLimits limits, const Invitation& invitation)
    : team_(std::move(team)),
      limits_(limits),
      clock_(beat_seconds(limits)),
      since_beat_s_(clock_.step_s()),
      status_(static_cast<int>(code_info(Code::kRanksFailed).exit)) {
  connect(invitation);
  clock_.tick();
}

// Before rank 0 misses this one, so that it is told who cannot reach whom.
void WatchMember::connect(const Invitation& invitation) {
  std::string tried;
  std::optional<Wire> wire = call_hub(invitation, team_.rank, limits_.silence_s * 3 / 4, tried);
  if (wire) {
    wire_ = std::move(*wire);
    return;
  }
  throw Error(Code::kRanksFailed, cat(team_.name(team_.rank), " cannot reach ", team_.name(0)))
      .found(tried)
      .help("ranks watch each other over TCP; --rank-timeout 0 does without it");
}

void WatchMember::claim(int status, bool may_follow) {
  status_ = status;
  wire_.send({.say = Say::kClaim, .may_follow = may_follow, .number = status});
}

void WatchMember::told() {
  told_ = true;
  wire_.send({.say = Say::kTold});
}

void WatchMember::leave() { wire_.send({.say = Say::kBye}); }

WatchOrder WatchMember::round(int wake_fd) {
  pollfd fds[] = {{wake_fd, POLLIN, 0},
                  {wire_.fd(), static_cast<short>(wire_.sending() ? POLLIN | POLLOUT : POLLIN), 0}};
  poll(fds, 2, milliseconds(clock_.step_s() - since_beat_s_));
  double passed = clock_.tick();
  hub_.silent_s += passed, since_beat_s_ += passed;
  if (alone_s_ >= 0) alone_s_ += passed;
  WatchOrder order;
  // One by one: what comes behind an order is for the round after it.
  for (std::vector<WatchFrame> next; order.what == WatchOrder::kGoOn && !(next = wire_.receive(1)).empty();)
    order = hear(next[0]);
  if (order.what != WatchOrder::kGoOn) return order;
  if (since_beat_s_ >= clock_.step_s()) {
    wire_.send(beat_of(current_activity()));
    since_beat_s_ = 0;
  }
  wire_.flush();
  return wire_.open() && hub_.silent_s <= limits_.silence_s ? order : without_hub();
}

WatchOrder WatchMember::hear(const WatchFrame& frame) {
  hub_.silent_s = 0;
  switch (frame.say) {
    case Say::kBeat:
      hub_.hear(frame);
      return {};
    case Say::kTell:
      may_tell_ = true;
      return {.what = WatchOrder::kTell};
    case Say::kEnd:
      if (!may_tell_ || told_) return {.what = WatchOrder::kEnd, .status = frame.number};
      // Rank 0 waits no longer for the cause that this one is about to tell; that gets its time all the same.
      status_ = frame.number;
      wire_.close();
      return {};
    case Say::kBye:
      return {.what = WatchOrder::kLeave};
    default:
      return {};
  }
}

// Rank 0 is gone. The deputy tells it; the others keep still meanwhile, so that the launcher, which ends
// everything at the first rank that ends, lets it. Should rank 0 only have been stopped, it finds the word to
// end when it goes on.
WatchOrder WatchMember::without_hub() {
  bool lost_now = alone_s_ < 0;
  if (lost_now) {
    alone_s_ = 0;
    wire_.send({.say = Say::kEnd, .number = status_});
  }
  if (told_ || alone_s_ > kWatchAloneSeconds * team_.ranks_per_core)
    return {.what = WatchOrder::kEnd, .status = status_};
  if (!lost_now || may_tell_ || team_.rank != team_.deputy()) return {};
  if (!wire_.open()) return {.what = WatchOrder::kReport, .cause = rank_died(team_, 0)};
  std::vector<RankState> ranks(static_cast<std::size_t>(team_.size()));
  ranks[0] = hub_;
  return {.what = WatchOrder::kReport, .cause = judge(team_, ranks, limits_)};
}

}  // namespace mckpt
