// The command line as a shell takes it, for cards that say how they were made: "mckpt verify 'my ckpt' -j 2".
#pragma once

#include <string>

namespace mckpt::impl {

class CommandLine;

std::string as_given(const CommandLine& line);

}  // namespace mckpt::impl
