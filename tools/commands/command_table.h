// The commands of the program, in one table: main() runs them and the help page lists them.
#pragma once

#include <string>
#include <string_view>

#include "core/base/error_code.h"

namespace mckpt::impl {

class CommandLine;

struct Command {
  std::string_view group, name, arguments, summary;
  Exit (*run)(CommandLine&);
  // Under a launcher, a command that does not share its work among ranks runs in rank 0 alone.
  bool on_every_rank = false;
  bool has_modes = false;  // with a help page each
};

bool is_command(std::string_view name);
// Throws kUnknownCommand.
const Command& find_command(std::string_view name);
std::string main_help();

Exit help_command(CommandLine& line);  // main.cc has it, since it runs the others

}  // namespace mckpt::impl
