// The parallel sizes that a model divides over, for the help of errors about one that it does not:
//
//   sizes_that_fit("tp", divides)     "sizes that fit: `tp` 1, 2, 4, 8"
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "core/base/int.h"

namespace mckpt::impl {

// Tries the sizes from 1 up to the most that runs have; "" if none fits. `setting`: as options name it.
std::string sizes_that_fit(std::string_view setting, const std::function<bool(i64)>& fits);
// Those that divide a number.
std::string sizes_that_divide(std::string_view setting, i64 number);

}  // namespace mckpt::impl
