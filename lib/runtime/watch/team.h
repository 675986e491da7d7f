// The ranks of a job introduce themselves once, through the Comm: which are on this host and share a board, and
// how many ranks share a core.
#pragma once

#include <string>
#include <vector>

#include "core/base/int.h"
#include "runtime/comm/same_host.h"

namespace mckpt::impl {

class Comm;

// The ranks that have places on one board, in the order of the places.
struct Team {
  struct Rank {
    int rank = 0;  // in the job
    HostId host;
    i64 pid = 0;
  };
  std::vector<Rank> ranks;
  int own = 0;            // the place of this rank
  int first_of_host = 0;  // the rank in whose process the board is made
  bool whole_job = true;  // the job has no other ranks
  double ranks_per_core =
      1;  // of the job's fullest host, at least 1: as many times longer may everything take

  int size() const { return static_cast<int>(ranks.size()); }
  // "rank 3 (host x, process 4711)"
  std::string name(int place) const;
};

// Collective.
Team meet(Comm& comm);

}  // namespace mckpt::impl
