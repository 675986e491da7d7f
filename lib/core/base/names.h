// Names of tensors as people order and choose them: layers.2 before layers.10, and globs.
#pragma once

#include <string_view>

namespace mckpt {

// Less by text, but a run of digits counts as one number.
bool natural_less(std::string_view a, std::string_view b);

// Writes bytes that stand in the natural order by themselves, for sorts of many names: where the keys of two
// differ, the lesser key is that of the lesser name; where they do not, the names differ in leading zeros
// alone. At most twice as many as the name has; returns their end.
char* write_natural_key(char* to, std::string_view name);

// How many bytes at the front of both are equal.
std::size_t common_length(std::string_view a, std::string_view b);

// '*' stands for any characters (dots as well), '?' for one, [a-z] and [!a-z] for one of a set; '\' takes the
// next character as it is. The whole name must match.
bool glob_match(std::string_view glob, std::string_view name);

}  // namespace mckpt
