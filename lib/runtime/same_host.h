// Which ranks are on one host.
#pragma once

#include "runtime/comm.h"

namespace mckpt {

// Collective. The ranks that share this rank's host, in the order of their ranks.
std::unique_ptr<Comm> ranks_of_host(Comm& comm);

}  // namespace mckpt
