// New values in the args of a checkpoint: the pickle stays byte for byte what it was but for the values that
// say on which grid, or with which layers, it was written.
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "core/base/int.h"

namespace mckpt::impl {

// Puts `value` in place of the integer that is the value of the text key `name`. Returns whether it could:
// the key must occur exactly once and have an integer, and a value that needs more bytes than the old one has
// no room in a pickle with frames.
bool replace_integer(std::string& pickle, std::string_view name, i64 value);

// A value of args; std::monostate is None.
using ArgValue = std::variant<std::monostate, bool, i64, std::string>;

// Gives the text key `name` another value, of any type, by an entry of its own behind the old one: of equal
// keys the last one counts, and what else refers to the old value keeps it. Returns whether it could: the key
// must be in one dictionary only, with a plain value, and the pickle in at most one frame. A key that is
// not there is put into the dictionary that has `beside`.
bool put_value(std::string& pickle, std::string_view name, const ArgValue& value,
               std::string_view beside = {});

}  // namespace mckpt::impl
