// TensorSpec: a tensor that is to be written, as a format's layout needs it: name, data type, dimensions. And
// the error about tensors that a format cannot contain, such as complex128 in a safetensors file: a layout
// collects such faults over all tensors, so that the user sees all of them at once.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/items/dtype.h"

namespace mckpt::impl {

// Does not own the name and the dimensions.
struct TensorSpec {
  std::string_view name;
  DType dtype = DType::kF32;
  std::span<const i64> dims;
};

// A fault for throw_not_held(): "'lm_head.weight': why".
std::string not_held(const TensorSpec& tensor, std::string_view why);

// Throws kNotHeld with the number of faults and a note for each of the first ones; does nothing if there are
// none. `format` is like "a safetensors file".
void throw_not_held(const std::vector<std::string>& faults, std::string_view format);

}  // namespace mckpt::impl
