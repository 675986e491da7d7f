// Names of tensors as people order and choose them: layers.2 before layers.10, and globs.
#pragma once

#include <string_view>

namespace mckpt {

// Less by text, but a run of digits counts as one number.
bool natural_less(std::string_view a, std::string_view b);

// '*' stands for any characters (dots as well), '?' for one, [a-z] and [!a-z] for one of a set; '\' takes the
// next character as it is. The whole name must match.
bool glob_match(std::string_view glob, std::string_view name);

}  // namespace mckpt
