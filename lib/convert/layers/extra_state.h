// What modules keep beside their parameters: the history of FP8 scales, or nothing.
#pragma once

#include "io/pickle/value.h"

namespace mckpt {

// Whether an extra state is that of a module without any: None, no bytes, a tensor of no items, or a list of
// such.
bool is_empty_state(const PickleValue& value);

}  // namespace mckpt
