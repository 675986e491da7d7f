// New numbers in the args of a checkpoint: the pickle stays byte for byte what it was but for the integers
// that say on which grid it was written.
#pragma once

#include <string>
#include <string_view>

#include "core/int.h"

namespace mckpt {

// Puts `value` in place of the integer that is the value of the text key `name`. Returns whether it could:
// the key must stand exactly once and have an integer, and a value that needs more bytes than the old one has
// no room in a pickle with frames.
bool replace_integer(std::string& pickle, std::string_view name, i64 value);

}  // namespace mckpt
