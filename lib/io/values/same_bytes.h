// Whether two tensors of a store have the same bytes, whatever pieces they are stored in: how a tied weight
// is recognised in a checkpoint that stores it twice (embedding and output layer).
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "io/store/store.h"

namespace mckpt::impl {

// For each pair of tensors: true if data type, shape and the contiguous little-endian bytes are equal.
// Tensors are read in windows, up to the first difference, so unequal ones cost little. Each pair is compared
// by one thread. Throws what TensorReader::read() throws.
std::vector<bool> have_same_bytes(const Store& store, std::span<const std::pair<i64, i64>> pairs,
                                  int threads);

}  // namespace mckpt::impl
