// Objects of well-known classes as they would print themselves: paths, numpy's arrays and scalars. Without
// it a random state would be shown as a call of numpy's internals.
#pragma once

#include <string>

#include "io/pickle/value.h"

namespace mckpt::impl {

// "PosixPath('/x')", "ndarray uint32 (624,)", "float64(0.5)"; "" for objects of other classes.
std::string known_object(const PickleObject& object);

}  // namespace mckpt::impl
