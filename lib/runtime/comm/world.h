// The job that this process is part of: whether a launcher (mpirun, srun) started it, and the Comm of all its
// ranks.
#pragma once

#include <functional>
#include <string>

#include "runtime/comm/comm.h"
#include "runtime/watch/limits.h"

namespace mckpt {

struct Launch {
  int rank = 0;
  int size = 1;  // 0: a launcher started this process but does not say how many there are
};

// What the launcher's environment says; needs no MPI. `variable` gives the value of an environment variable,
// or null.
Launch read_launch(const std::function<const char*(const char*)>& variable);
Launch launch();  // of this process

// All ranks of the job; joins it at the first call. A process that was started alone gets the local Comm and
// loads nothing. Throws Error(kModuleMissing), or Error(kRanksFailed) when MPI sees another job than the
// launcher started.
Comm& world();

// Watches the ranks of world() from here on (runtime/watch/rank_watch.h): every rank calls it together, and asks
// world() anew. Does nothing for a rank alone, and for a silence of 0. `met` is called when all ranks have
// been heard of; until then a rank that waits for others reports after the same limit that they do not come.
void watch_world(
    const WatchLimits& limits, const std::function<void()>& met = [] {});
bool world_is_watched();
// What then tells that another rank is lost, in this one; called in a thread of the watch.
void tell_lost_ranks_by(std::function<void(const Error&)> tell);

// What is done last, by one rank of those that are left, when all are ended because of one: it must not
// throw. It may be called while the command still runs. Empty takes it back.
void when_job_is_lost(std::function<void()> last);

// After an error, before anything is given up that other ranks see the end of (a folder that all use, a
// communicator): returns when the error is the one to tell, which abort_world() then does. Another rank's may
// end the process meanwhile. Does nothing where nobody watches.
void claim_world(int status, bool may_follow);

// The two ways out, called last. After a command has returned: every rank leaves together. After an error,
// while the others may be waiting for this rank: ends them all with this status, and returns only when alone.
// `tell` is called first, unless another rank's error came before and is told there; an error that
// `may_follow` from another's waits for that a moment.
void leave_world();
void abort_world(int status, const std::function<void()>& tell = {}, bool may_follow = false);

}  // namespace mckpt
