// The environment variables that a launcher (mpirun, srun) sets in the processes that it starts. Reading them
// needs no MPI, so that a process learns that it is rank 3 of 8 before it loads anything.
#pragma once

#include <functional>

namespace mckpt::impl {

// A process without a launcher is rank 0 of 1.
struct Launch {
  int rank = 0;
  int size = 1;  // 0: a launcher started this process but does not say how many there are
};

// `variable` looks up an environment variable (null: it is not set); tests pass a function of their own.
Launch read_launch(const std::function<const char*(const char*)>& variable);

}  // namespace mckpt::impl
