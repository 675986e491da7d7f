// Whether two tensors have the same bytes, whatever pieces they are stored in. A model with tied weights may
// be stored with both of them (embedding and output layer): only one is converted, which is right only if
// they are equal. A folder may hold two models (io/safetensors/two_models.h).
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

// The first of the pairs that are not equal; -1 if all are. `one` has the first tensor of each pair, `other`
// the second. Pairs behind an unequal one are not read any more.
i64 first_unlike(const Store& one, const Store& other, std::span<const std::pair<i64, i64>> pairs,
                 int threads);

}  // namespace mckpt::impl
