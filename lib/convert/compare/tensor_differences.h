// Which tensors two stores do not have alike, before any byte is compared.
#pragma once

#include <string>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

class Store;

// A tensor by name that one store alone has (-1 in the other), or that differs in type or shape.
struct TensorDifference {
  i64 one = -1, other = -1;

  friend bool operator==(const TensorDifference&, const TensorDifference&) = default;
};

// In the natural order of the names in `one`, then of those in `other` alone.
std::vector<TensorDifference> tensor_differences(const Store& one, const Store& other);

// "bfloat16 [2, 3]"
std::string type_and_shape(const Store& store, i64 tensor);

}  // namespace mckpt::impl
