// Whether two tensors of a store have the same bytes, whatever pieces they are stored in. A model with tied
// weights may be stored with both of them (embedding and output layer): only one is converted, which is right
// only if they are equal.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

class Store;

// For each pair of tensors: true if data type, shape and the contiguous little-endian bytes are equal.
// Tensors are read in windows, up to the first difference, so unequal ones cost little. Each pair is compared
// by one thread. Throws what TensorReader::read() throws.
std::vector<bool> have_same_bytes(const Store& store, std::span<const std::pair<i64, i64>> pairs,
                                  int threads);

}  // namespace mckpt::impl
