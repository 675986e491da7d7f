// Objects of classes that everybody knows, as they would print themselves: paths, numpy's arrays and scalars.
#pragma once

#include <string>

#include "io/pickle/value.h"

namespace mckpt::impl {

// "PosixPath('/x')", "ndarray uint32 (624,)", "float64(0.5)"; "" for objects of other classes.
std::string known_object(const PickleObject& object);

}  // namespace mckpt::impl
