// The ranks of a job as they introduce themselves, once, through the Comm: who stands on which host.
#pragma once

#include <string>
#include <vector>

#include "runtime/comm/same_host.h"
#include "runtime/watch/wire.h"

namespace mckpt {

struct Team {
  struct Rank {
    HostId host;
    i32 pid = 0;
  };
  int rank = 0;  // this one
  std::vector<Rank> ranks;
  bool one_host = true;       // all of them, with one loopback
  double ranks_per_core = 1;  // of the fullest host, at least 1: as many times longer may everything take

  int size() const { return static_cast<int>(ranks.size()); }
  // "rank 3 (host x, process 4711)"
  std::string name(int rank) const;
  // Who tells that rank 0 is gone: a rank of another host if there is one, as hosts are lost as a whole.
  int deputy() const;
};

// Where rank 0 is reached, and how both sides know each other.
struct Invitation {
  std::vector<Endpoint> endpoints;
  WatchToken hello = {}, welcome = {};
};

// Every rank of the Comm calls these together.
Team meet(Comm& comm);
Invitation invite(Comm& comm, const Listener* listener);  // rank 0 gives its listener

}  // namespace mckpt
