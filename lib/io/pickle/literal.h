// Plain values as literals of Python, exactly: what ast.literal_eval() makes of the text is the value. A NaN, which has no
// literal, is the name nan.
//
//   {'lr': 0.0003, 'betas': (0.9, 0.95), 'name': 'it\'s'}
#pragma once

#include <optional>
#include <string>

#include "io/pickle/value.h"

namespace mckpt::impl {

// Nothing for a value that is or contains something else than None, bools, integers, floats, texts, bytes, tuples, lists, dicts and sets with members; and for one that is nested deeper
// than 40 or needs more than 64 MiB, as what refers to itself does.
std::optional<std::string> pickle_literal(PickleValue v);

}  // namespace mckpt::impl
