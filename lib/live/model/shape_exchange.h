// Checks that all ranks are about to do the same thing: one collective for the whole model gives every rank
// the sizes of the others, before they meet in collectives that would otherwise wait for ever or mix up
// values. One collective for each parameter would cost thousands of round trips.
#pragma once

#include "live/model/model.h"

namespace mckpt::impl {

// Collective. Throws kRanksFailed with the first rank that differs and in what: parameter groups, shapes, or
// shards.
void exchange_shapes(const LiveModel& model);

}  // namespace mckpt::impl
