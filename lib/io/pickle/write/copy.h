// A value of one pickle as a pickle of its own: a part of a larger object, such as the args in the common
// state of a run, becomes an object that torch and Megatron load.
//
//   common.pt: {"args": Namespace(...), "iteration": 10, ...}    -->    args: Namespace(...)
#pragma once

#include <string>

#include "io/pickle/value.h"

namespace mckpt::impl {

// Protocol 2. Values that are shared or contain themselves stay so. Throws kUnsupportedPickle for a value
// with a tensor in it, whose bytes are not in the pickle; kPickleLimit if it is nested too deep.
std::string copy_pickle(PickleValue value);

}  // namespace mckpt::impl
