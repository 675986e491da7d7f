// How many ranks a result may have in which each rank has a file of its own.
#pragma once

#include "core/base/int.h"

namespace mckpt::impl {

class Store;

// Throws kBadGrid for less than one rank, and for more than the source has rows to divide among them: 1,024
// ranks are always allowed, and never more than 65,536.
void refuse_many_ranks(i64 ranks, const Store& source);

}  // namespace mckpt::impl
