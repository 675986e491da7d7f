// The hub of the watch, in rank 0: hears every rank, finds who is to blame, lets one rank tell it, and then
// ends them all.
#pragma once

#include <vector>

#include "runtime/watch/role.h"

namespace mckpt {

class WatchHub final : public WatchRole {
 public:
  WatchHub(Team team, WatchLimits limits, Invitation invitation, Listener listener);

  void claim(int status, bool may_follow) override { claim_of(0, status, may_follow); }
  void told() override { told_ = true; }
  void leave() override { ranks_[0].left = true; }
  WatchOrder round(int wake_fd) override;

 private:
  struct Claim {
    int rank = 0, status = 0;
    double waits_s = 0;  // until it is granted
  };

  void wait(int wake_fd);
  void let_time_pass();
  void take_connections();
  void greet(Wire& stranger);
  void hear_all();
  void hear(int rank, const WatchFrame& frame);
  void claim_of(int rank, int status, bool may_follow);
  void send_all(const WatchFrame& frame);
  WatchOrder decide();
  WatchOrder report(Error cause);
  WatchOrder desert();
  WatchOrder grant();
  WatchOrder end();
  bool all_left() const;
  // Waits until the others have ended too, or have had their time for it.
  void wait_for_ends();

  Team team_;
  WatchLimits limits_;
  Invitation invitation_;
  Listener listener_;
  WatchClock clock_;
  double grace_s_;
  double since_beat_s_ = 0;

  struct Stranger {
    Wire wire;
    double age_s = 0;
  };
  std::vector<Stranger> strangers_;  // who has connected and not yet said who it is
  std::vector<Wire> wires_;          // by rank; none for rank 0
  std::vector<RankState> ranks_;
  std::vector<bool> died_;

  std::optional<Claim> claim_;
  int teller_ = -1;  // who tells the cause
  bool told_ = false;
  int deserter_ = -1;  // who took this rank for dead
  double telling_s_ = 0;
  int status_ = 0;
};

}  // namespace mckpt
