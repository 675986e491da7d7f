// Natural order of tensor names (layers.2 before layers.10), and globs that choose names:
//
//   glob_match("*.layers.[0-3].*", "model.layers.2.mlp.up_proj.weight")   true
//   glob_match("layers.2", "model.layers.2")                              false: the whole name must match
#pragma once

#include <string_view>

namespace mckpt::impl {

// Compares as text, but a sequence of digits as one number.
bool natural_less(std::string_view a, std::string_view b);

// Writes a sort key for a name: bytes whose plain order is the natural order, for sorts of many names. Names
// with equal keys differ in leading zeros only. The key is at most twice as long as the name; returns the end
// of the key.
char* write_natural_key(char* to, std::string_view name);

// The length of the common prefix.
std::size_t common_length(std::string_view a, std::string_view b);

// '*' matches any characters (dots too), '?' one character, [a-z] and [!a-z] one of a set; '\' makes the next
// character plain. The whole name must match.
bool glob_match(std::string_view glob, std::string_view name);

}  // namespace mckpt::impl
