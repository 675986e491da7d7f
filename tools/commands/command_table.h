// The commands of the program, in one table: main() runs them and the help page lists them. Each command
// declares its own arguments and options; page_of() asks it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error_code.h"
#include "tools/help/help_page.h"

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
// The command that does what the word says, with its arguments: "export SRC DST" for "merge"; "" if none is
// known.
std::string command_for(std::string_view word);
// Throws kUnknownCommand.
const Command& find_command(std::string_view name);
std::span<const Command> all_commands();

// The arguments, options and texts of a command, or of one of its modes. Throws kUnknownCommand, or kUsage
// for no mode.
HelpPage page_of(std::string_view command, std::string_view mode);
// The pages of all commands and modes, in the order of the help.
std::vector<HelpPage> all_pages();

constexpr std::string_view kProgramSummary = "convert, inspect and prove LLM checkpoints";
std::string_view exit_statuses();
std::string main_help();
// The rows of the options that every command has.
std::vector<HelpPage::Row> global_options();

}  // namespace mckpt::impl
