// The places of a Hugging Face model's tensors in files.
#pragma once

#include <vector>

#include "core/base/int.h"
#include "core/items/dtype.h"
#include "core/items/shape.h"

namespace mckpt::impl {

// Where the tensors of a model's source table are stored, or will be stored. Plain numbers.
struct TensorPlaces {
  struct Place {
    i32 file = -1;   // -1: the tensor is not wanted
    i64 offset = 0;  // bytes, of the first item
    DType dtype = DType::kBF16;
    Shape shape;
  };
  std::vector<Place> tensors;  // in the order of the table
};

}  // namespace mckpt::impl
