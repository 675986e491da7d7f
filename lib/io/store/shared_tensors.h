// Tensors of a store that lie in the same bytes of a file: tied weights, views of one storage.
#pragma once

#include <span>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

class Store;

// Those of `tensors` whose stretch of a file overlaps that of one before it in the file: of two tied tensors,
// the second.
std::vector<i64> shared_tensors(const Store& store, std::span<const i64> tensors);

}  // namespace mckpt::impl
