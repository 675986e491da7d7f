// What a comparison counts of tensors that differ.
#pragma once

#include <functional>
#include <string>

#include "io/values/distance.h"

namespace mckpt::impl {

struct Counting {
  bool all = false;  // every tensor, not only those that findings name; and the names of all compared tensors
  std::function<Tolerance(const std::string& tensor)> within{};  // empty: only equal items are alike
};

}  // namespace mckpt::impl
