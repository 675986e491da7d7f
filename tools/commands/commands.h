// Every command: one function in one file of the same name. The table of commands is in
// tools/commands/command_table.cc.
//
// A command declares its arguments on the line, calls parse(), does its work through the library, prints its
// answer with Output, and returns the exit status:
//
//   0  done, equal, healthy     1  the answer is negative: different, or problems were found
//
// It throws Error for everything that ends it early (exit statuses 2 to 5); main prints errors.
#pragma once

#include "core/base/error_code.h"

namespace mckpt::impl {

class CommandLine;

Exit cat_command(CommandLine& line);
Exit completions_command(CommandLine& line);
Exit convert_command(CommandLine& line);
Exit diff_command(CommandLine& line);
Exit env_command(CommandLine& line);
Exit example_command(CommandLine& line);
Exit explain_command(CommandLine& line);
Exit export_command(CommandLine& line);
Exit formats_command(CommandLine& line);
Exit help_command(CommandLine& line);
Exit layout_command(CommandLine& line);
Exit inspect_command(CommandLine& line);
Exit ls_command(CommandLine& line);
Exit man_command(CommandLine& line);
Exit mappings_command(CommandLine& line);
Exit pattern_command(CommandLine& line);
Exit plot_command(CommandLine& line);
Exit roundtrip_command(CommandLine& line);
Exit stats_command(CommandLine& line);
Exit verify_command(CommandLine& line);

}  // namespace mckpt::impl
