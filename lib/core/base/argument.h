// Paths in commands that a message offers: they can be pasted into a shell.
#pragma once

#include <string>

namespace mckpt::impl {

// The path as an argument of a command: quoted where a shell would read it otherwise.
std::string as_argument(const std::string& path);

}  // namespace mckpt::impl
