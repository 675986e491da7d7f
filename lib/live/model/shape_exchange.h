// Checks that all ranks are about to do the same: one collective for the whole model gives every rank the
// sizes of the others, before they meet in collectives that would wait for ever or mix up values.
#pragma once

namespace mckpt::impl {

class LiveModel;

// Collective. Throws kRanksFailed that names the first rank that differs, and in what.
void exchange_shapes(const LiveModel& model);

}  // namespace mckpt::impl
