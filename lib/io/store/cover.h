// Whether the chunks of a tensor in a store cover it exactly once: the check that a sharded checkpoint is
// complete. A reader that fills a tensor from chunks would otherwise leave holes with any values.
//
//   [8, 4] = box [0, 0] + [5, 4]  and  box [5, 0] + [3, 4]      no fault
//   [8, 4] = box [0, 0] + [5, 4]  and  box [6, 0] + [2, 4]      a hole: offsets [5, 0], sizes [1, 4]
#pragma once

#include <vector>

#include "core/items/box_cover.h"
#include "io/store/store.h"

namespace mckpt::impl {

// At most `most` faults; none: the chunks cover the tensor. Replicas are left out, and the numbers of boxes
// in a fault count the other chunks alone. Reads no data.
std::vector<BoxFault> chunk_faults(const Store& store, i64 tensor, std::size_t most = 8);

// The error code of a kind of fault: kChunkOutside, kChunkOverlap, or kChunkHole (also if the check was
// stopped because too many cuts cross each other).
Code cover_code(BoxFault::Kind kind);

}  // namespace mckpt::impl
