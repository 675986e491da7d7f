// A tensor of one item as a number in a pickle: torch keeps the count of steps of each parameter as such a
// tensor, Megatron as an integer among the options.
#pragma once

#include <string>

#include "core/base/int.h"

namespace mckpt::impl {

class Store;

// Reads the item.
double scalar_of(const Store& store, i64 tensor);
// The item as a pickle: an integer if the value is whole, else a float.
std::string pickle_scalar(const Store& store, i64 tensor);
std::string pickle_flag(bool value);

}  // namespace mckpt::impl
