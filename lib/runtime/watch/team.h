// Team: the ranks of a job introduce themselves once, through the Comm: which ranks are on this host and
// share a board, and how many ranks share a core.
//
//   8 ranks on hosts a (ranks 0-3) and b (4-7)    on rank 5: ranks 4 5 6 7, own 1, first_of_host 4, whole_job false
#pragma once

#include <string>
#include <vector>

#include "runtime/comm/same_host.h"

namespace mckpt::impl {

// The ranks that have places on one board, in the order of the places.
struct Team {
  struct Rank {
    int rank = 0;  // in the job
    HostId host;
    i64 pid = 0;
  };
  std::vector<Rank> ranks;
  int own = 0;                // the place of this rank
  int first_of_host = 0;      // the rank in whose process the board is made
  bool whole_job = true;      // the job has no ranks without a place on this board
  double ranks_per_core = 1;  // on the job's fullest host, at least 1: limits are multiplied by it

  int size() const { return static_cast<int>(ranks.size()); }
  // "rank 3 (host x, process 4711)"
  std::string name(int place) const;
};

// Collective: one all_gather over all ranks of the job.
Team meet(Comm& comm);

}  // namespace mckpt::impl
