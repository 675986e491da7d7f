// Whether the chunks of a tensor in a store cover it exactly once.
#pragma once

#include <vector>

#include "core/base/error_code.h"
#include "core/base/int.h"
#include "core/items/box_cover.h"

namespace mckpt::impl {

class Store;

// What is wrong, at most `most` of it; replicas do not count. The boxes of a fault are positions among the
// other chunks.
std::vector<BoxFault> chunk_faults(const Store& store, i64 tensor, std::size_t most = 8);

// kChunkOutside, kChunkOverlap, kChunkHole (also where the proof was given up).
Code cover_code(BoxFault::Kind kind);

}  // namespace mckpt::impl
