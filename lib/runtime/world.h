// The job that this process is part of: whether a launcher (mpirun, srun) started it, and the Comm of all its
// ranks.
#pragma once

#include <functional>
#include <string>

#include "runtime/comm.h"

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

// The two ways out, called last. After a command has returned: every rank leaves together. After an error,
// while the others may be waiting for this rank: takes them all out with this status, and returns only when
// alone.
void leave_world();
void abort_world(int status);

}  // namespace mckpt
