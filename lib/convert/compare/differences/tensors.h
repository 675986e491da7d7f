// Which tensors are not the same in two stores by their headers: missing on one side, or of another type or
// shape. No data are read.
//
//   one: w bfloat16 [2, 3], v float32 [4]     other: w bfloat16 [2, 4], u float32 [4]     -->  (w, w) (v, -) (-, u)
#pragma once

#include <string>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

class Store;

// A tensor of a name, by its numbers in both stores; -1: the store has no tensor of that name.
struct TensorDifference {
  i64 one = -1, other = -1;

  friend bool operator==(const TensorDifference&, const TensorDifference&) = default;
};

// The differences, in the natural order of the names in `one`, then of the names that only `other` has.
std::vector<TensorDifference> tensor_differences(const Store& one, const Store& other);

// "bfloat16 [2, 3]"
std::string type_and_shape(const Store& store, i64 tensor);

}  // namespace mckpt::impl
