// A member of the watch, in every rank but 0: tells the hub that it lives and what it is at, and notices when
// the hub is gone.
#pragma once

#include "runtime/watch/role.h"

namespace mckpt {

class WatchMember final : public WatchRole {
 public:
  // Connects to the hub. Throws kRanksFailed.
  WatchMember(Team team, WatchLimits limits, const Invitation& invitation);

  void claim(int status, bool may_follow) override;
  void told() override;
  void leave() override;
  WatchOrder round(int wake_fd) override;

 private:
  void connect(const Invitation& invitation);
  WatchOrder hear(const WatchFrame& frame);
  WatchOrder without_hub();

  Team team_;
  WatchLimits limits_;
  WatchClock clock_;
  Wire wire_{Socket()};
  RankState hub_;
  double since_beat_s_;
  double alone_s_ = -1;  // since the hub was lost; -1: it is there
  bool told_ = false, may_tell_ = false;
  int status_;
};

}  // namespace mckpt
