// A tensor that is to be written: what a format's layout needs to know of it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/int.h"
#include "core/items/dtype.h"

namespace mckpt::impl {

struct TensorSpec {
  std::string_view name;
  DType dtype = DType::kF32;
  std::span<const i64> dims;
};

// "'lm_head.weight': why", for throw_not_held.
std::string not_held(const TensorSpec& tensor, std::string_view why);

// Throws kNotHeld with the first of the faults, unless there are none. `format` is like "a safetensors file".
void throw_not_held(const std::vector<std::string>& faults, std::string_view format);

}  // namespace mckpt::impl
