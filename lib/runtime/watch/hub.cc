#include "runtime/watch/hub.h"

#include <poll.h>

#include <algorithm>

namespace mckpt {
namespace {

// So many more connections than there are ranks can only be of strangers; the oldest goes.
constexpr std::size_t kMostStrangers = 64;

}  // namespace

WatchHub::WatchHub(Team team, WatchLimits limits, Invitation invitation, Listener listener)
    : team_(std::move(team)),
      limits_(limits),
      invitation_(std::move(invitation)),
      listener_(std::move(listener)),
      clock_(beat_seconds(limits)),
      grace_s_(kWatchGraceSeconds * team_.ranks_per_core),
      ranks_(static_cast<std::size_t>(team_.size())),
      died_(static_cast<std::size_t>(team_.size())) {
  allow_connections(team_.size());
  for (int r = 0; r < team_.size(); r++) wires_.emplace_back(Socket());
}

WatchOrder WatchHub::round(int wake_fd) {
  wait(wake_fd);
  let_time_pass();
  take_connections();
  hear_all();
  WatchFrame own = beat_of(current_activity());
  ranks_[0].hear(own);
  if (since_beat_s_ >= clock_.step_s()) {
    send_all(own);
    since_beat_s_ = 0;
  }
  return decide();
}

void WatchHub::wait(int wake_fd) {
  std::vector<pollfd> fds = {{wake_fd, POLLIN, 0}, {listener_.socket.fd(), POLLIN, 0}};
  auto add = [&](const Wire& wire) {
    if (wire.open())
      fds.push_back({wire.fd(), static_cast<short>(wire.sending() ? POLLIN | POLLOUT : POLLIN), 0});
  };
  for (const Stranger& s : strangers_) add(s.wire);
  for (const Wire& wire : wires_) add(wire);
  poll(fds.data(), fds.size(), milliseconds(clock_.step_s() - since_beat_s_));
}

void WatchHub::let_time_pass() {
  double passed = clock_.tick();
  since_beat_s_ += passed;
  if (teller_ >= 0) telling_s_ += passed;
  if (claim_) claim_->waits_s -= passed;
  for (RankState& rank : ranks_) rank.silent_s += passed, rank.still_s += passed;
  for (Stranger& s : strangers_) s.age_s += passed;
}

void WatchHub::take_connections() {
  while (Socket made = accept_one(listener_)) {
    if (strangers_.size() == kMostStrangers + ranks_.size()) strangers_.erase(strangers_.begin());
    strangers_.push_back({Wire(std::move(made))});
  }
  for (Stranger& s : strangers_) greet(s.wire);
  std::erase_if(strangers_, [&](const Stranger& s) { return !s.wire.open() || s.age_s > limits_.silence_s; });
}

// Makes a connection that knows the secret a rank's; any other that says something is closed.
void WatchHub::greet(Wire& stranger) {
  std::vector<WatchFrame> frames = stranger.receive();
  if (frames.empty()) return;
  const WatchFrame& hello = frames[0];
  bool known = hello.say == Say::kHello && hello.token == invitation_.hello && hello.number > 0 &&
               hello.number < team_.size();
  std::size_t rank = known ? static_cast<std::size_t>(hello.number) : 0;
  if (!known || wires_[rank].open()) return stranger.close();
  stranger.send({.say = Say::kWelcome, .token = invitation_.welcome});
  wires_[rank] = std::exchange(stranger, Wire(Socket()));
  ranks_[rank].silent_s = 0;
  for (const WatchFrame& frame : std::span(frames).subspan(1)) hear(hello.number, frame);
  died_[rank] = !wires_[rank].open() && !ranks_[rank].left;
}

void WatchHub::hear_all() {
  for (int r = 1; r < team_.size(); r++) {
    std::size_t i = static_cast<std::size_t>(r);
    if (!wires_[i].open()) continue;
    for (const WatchFrame& frame : wires_[i].receive()) hear(r, frame);
    wires_[i].flush();
    if (!wires_[i].open() && !ranks_[i].left) died_[i] = true;
  }
}

void WatchHub::hear(int rank, const WatchFrame& frame) {
  RankState& state = ranks_[static_cast<std::size_t>(rank)];
  switch (frame.say) {
    case Say::kBeat:
      return state.hear(frame);
    case Say::kClaim:
      return claim_of(rank, frame.number, frame.may_follow);
    case Say::kTold:
      told_ |= rank == teller_;
      return;
    case Say::kBye:
      state.left = true;
      return;
    case Say::kEnd:
      deserter_ = rank;
      return;
    default:
      return;
  }
}

// The first claim counts, but one that may follow from something else makes way for any other.
void WatchHub::claim_of(int rank, int status, bool may_follow) {
  if (!claim_ || (claim_->waits_s > 0 && !may_follow))
    claim_ = Claim{rank, status, may_follow ? kWatchFollowSeconds * team_.ranks_per_core : 0};
}

WatchOrder WatchHub::decide() {
  if (told_ || telling_s_ > limits_.silence_s) return end();
  if (deserter_ >= 0 && teller_ < 0) return desert();
  auto dead = std::find(died_.begin(), died_.end(), true);
  int died = dead == died_.end() ? -1 : static_cast<int>(dead - died_.begin());
  if (teller_ >= 0)
    return died_[static_cast<std::size_t>(teller_)] ? report(rank_died(team_, teller_)) : WatchOrder{};
  if (claim_ && claim_->waits_s <= 0) return grant();
  if (died >= 0) return report(rank_died(team_, died));
  if (std::optional<Error> cause = judge(team_, ranks_, limits_)) return report(std::move(*cause));
  if (!all_left()) return {};
  send_all({.say = Say::kBye});
  wait_for_ends();
  return {.what = WatchOrder::kLeave};
}

WatchOrder WatchHub::report(Error cause) {
  teller_ = 0;
  status_ = static_cast<int>(code_info(cause.code()).exit);
  return {.what = WatchOrder::kReport, .cause = std::move(cause)};
}

// A rank took this one for dead. The deputy has told so, and a rank 0 that was stopped knows that it has;
// otherwise it is that rank's connection that fails.
WatchOrder WatchHub::desert() {
  Error lost(Code::kRanksFailed, cat(team_.name(deserter_), " hears nothing of ", team_.name(0)));
  if (deserter_ != team_.deputy() && clock_.longest_s() < limits_.silence_s / 2)
    return report(std::move(lost));
  status_ = static_cast<int>(code_info(lost.code()).exit);
  return end();
}

WatchOrder WatchHub::grant() {
  teller_ = claim_->rank;
  status_ = claim_->status;
  if (teller_ == 0) return {.what = WatchOrder::kTell};
  wires_[static_cast<std::size_t>(teller_)].send({.say = Say::kTell});
  return {};
}

WatchOrder WatchHub::end() {
  send_all({.say = Say::kEnd, .number = status_});
  wait_for_ends();
  return {.what = WatchOrder::kEnd, .status = status_};
}

void WatchHub::send_all(const WatchFrame& frame) {
  for (Wire& wire : wires_) wire.send(frame);
}

bool WatchHub::all_left() const {
  return std::all_of(ranks_.begin(), ranks_.end(), [](const RankState& r) { return r.left; });
}

void WatchHub::wait_for_ends() {
  clock_.tick();
  for (double waited_s = 0; waited_s < grace_s_; waited_s += clock_.tick()) {
    std::vector<pollfd> fds;
    for (Wire& wire : wires_) {
      wire.flush();
      wire.receive();
      if (wire.open()) fds.push_back({wire.fd(), POLLIN, 0});
    }
    if (fds.empty()) return;
    poll(fds.data(), fds.size(), milliseconds(clock_.step_s()));
  }
}

}  // namespace mckpt
