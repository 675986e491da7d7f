// How a member of the watch reaches rank 0: at whichever of its addresses somebody answers who knows the job.
#pragma once

#include <optional>

#include "runtime/watch/team.h"

namespace mckpt {

// Attempts overlap, so that addresses where nobody answers cost little of the time. One that knows the job is
// asked for in turn and not all at once: rank 0 would have many times as many connections as ranks.
//
// None when nobody answers within `limit_s`; `tried` then says what became of each attempt. What rank 0 has
// said since its welcome is in the wire, even if it is closed already.
std::optional<Wire> call_hub(const Invitation& invitation, int rank, double limit_s, std::string& tried);

}  // namespace mckpt
