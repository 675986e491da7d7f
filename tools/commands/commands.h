// Every command: one function in one file of the same name.
#pragma once

#include "core/base/error_code.h"

namespace mckpt::impl {

class CommandLine;

Exit cat_command(CommandLine& line);
Exit convert_command(CommandLine& line);
Exit env_command(CommandLine& line);
Exit explain_command(CommandLine& line);
Exit export_command(CommandLine& line);
Exit formats_command(CommandLine& line);
Exit layout_command(CommandLine& line);
Exit inspect_command(CommandLine& line);
Exit ls_command(CommandLine& line);
Exit mappings_command(CommandLine& line);
Exit pattern_command(CommandLine& line);
Exit roundtrip_command(CommandLine& line);
Exit stats_command(CommandLine& line);
Exit verify_command(CommandLine& line);

}  // namespace mckpt::impl
