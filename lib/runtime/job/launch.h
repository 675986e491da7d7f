// What a launcher (mpirun, srun) says in the environment of the processes that it starts; needs no MPI.
#pragma once

#include <functional>

namespace mckpt::impl {

struct Launch {
  int rank = 0;
  int size = 1;  // 0: a launcher started this process but does not say how many there are
};

// `variable` gives the value of an environment variable, or null.
Launch read_launch(const std::function<const char*(const char*)>& variable);

}  // namespace mckpt::impl
