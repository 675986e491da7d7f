// The pattern of the hybrid model that a checkpoint is of, as the args of its run tell it.
#pragma once

#include <optional>

#include "core/hybrid/pattern.h"
#include "io/store/store.h"

namespace mckpt {

// Nothing where the args say nothing, cannot be read, or contradict each other: what is wrong with them is
// told by those who look at them for their own sake.
std::optional<LayerPattern> pattern_of_run(const Store& store);

}  // namespace mckpt
