// The modes of `mckpt convert`: the kinds of lib/options/kinds.h. A mode declares the fields of its struct,
// and hands the struct to the library to be planned.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/error_code.h"

namespace mckpt::impl {

class CommandLine;
struct ConversionKind;

// The names of all modes, in the order of the help.
std::vector<std::string> convert_modes();
// The mode that a word names, in its own spelling or in another program's: "hf2fsdp" and "hf_to_fsdp" are
// hf-to-fsdp. "" if it names none.
std::string convert_mode_meant(std::string_view word);
// "convert to-mcore"; "export SRC DST", the command of which fsdp-to-hf is another name.
std::string command_of_mode(std::string_view mode);

// Runs a conversion. `command`: the name that the JSON answer has, "convert" or "export".
Exit run_mode(CommandLine& line, const ConversionKind& kind, std::string_view command);

}  // namespace mckpt::impl
