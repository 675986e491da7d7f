// A Comm that says when its rank waits for the others, so that the watch blames those that are waited for.
#pragma once

#include <memory>

#include "runtime/comm/comm.h"

namespace mckpt {

std::unique_ptr<Comm> watched_comm(std::unique_ptr<Comm> comm);

}  // namespace mckpt
