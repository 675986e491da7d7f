// The help pages of conversions, but for their options.
#pragma once

#include <string_view>

namespace mckpt::impl {

class CommandLine;

// Declares the paragraphs and examples of a kind (options/kinds.h). The page of fsdp-to-hf is also the page
// of `mckpt export`: its examples have the name of the command.
void describe_conversion(std::string_view kind, CommandLine& line);

}  // namespace mckpt::impl
