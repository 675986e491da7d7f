// Whether two tensors of a store have the same bytes, whatever pieces they are stored in.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

class Store;

// For each pair of tensors: true if data type, shape and the contiguous little-endian bytes are equal. A tensor is
// read in windows, up to its first difference.
std::vector<bool> have_same_bytes(const Store& store, std::span<const std::pair<i64, i64>> pairs,
                                  int threads);

}  // namespace mckpt::impl
