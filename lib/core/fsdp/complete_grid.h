// The grid of a training run whose data-parallel size may be left out.
#pragma once

#include <optional>

#include "core/base/int.h"
#include "core/fsdp/grid.h"

namespace mckpt::impl {

// Throws kBadGrid for instances that are related by `outer` where there is one alone.
void refuse_idle_outer(i64 hsdp, HsdpOuter outer);

// The sizes with `dp`, or else with the smallest data-parallel size that fits them; sizes.dp is not read.
// Throws kBadGrid for a grid that is not valid or has an idle outer, and for a world of more ranks than mckpt
// plans for.
Grid complete_grid(Grid sizes, std::optional<i64> dp);

// The sizes with `dp`, or else with the data-parallel size of a job of so many ranks. Throws what
// complete_grid() throws, and kBadGrid if dp is left out and the ranks do not divide by the other sizes of
// the dense mesh.
Grid grid_of_ranks(Grid sizes, std::optional<i64> dp, i64 ranks);

}  // namespace mckpt::impl
