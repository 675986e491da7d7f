// A value of one pickle as a pickle of its own: what lies in a larger object, such as the args in the common
// state of a run, becomes an object that torch and Megatron load.
#pragma once

#include <string>

#include "io/pickle/value.h"

namespace mckpt::impl {

// Protocol 2. What is shared or cyclic stays so. Throws kUnsupportedPickle for a value that holds a tensor,
// whose bytes are no part of a pickle.
std::string copy_pickle(PickleValue value);

}  // namespace mckpt::impl
