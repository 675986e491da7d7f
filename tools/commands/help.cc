// mckpt help [COMMAND [MODE]]: what COMMAND --help prints, or the list of all commands.
//
//   $ mckpt help convert reshard
//   mckpt convert reshard - write a checkpoint for another grid, in its own format
//   ...
//
//   {"schema": "mckpt.help/1", "ok": true, "commands": [{"name": "inspect", ..., "options": [...]}, ...]}      --json
#include "core/base/error.h"
#include "tools/commands/command_table.h"
#include "tools/commands/commands.h"
#include "tools/commands/convert_modes.h"
#include "tools/help/help_json.h"
#include "tools/help/help_text.h"
#include "tools/options/command_line.h"
#include "tools/render/output.h"

namespace mckpt::impl {

Exit help_command(CommandLine& line) {
  std::vector<std::string> names;
  for (const Command& c : all_commands()) names.emplace_back(c.name);
  std::optional<std::string> command, mode;
  line.positional("COMMAND", command, "a command; without COMMAND, all commands are listed")
      .words(std::move(names));
  line.positional("MODE", mode, "a mode of the command, if the command has modes").words(convert_modes());
  line.description("With --json, prints everything that a command takes: of all commands without COMMAND.");
  line.example("mckpt help pattern");
  line.example("mckpt help convert reshard");
  line.example("mckpt help --json");
  line.parse();
  Output out(line.flags());
  out.keep_lines();
  std::vector<HelpPage> pages;
  if (out.json() && !command) pages = all_pages();
  if (command) pages.push_back(page_of(*command, mode.value_or("")));
  if (out.json())
    write_help_json(out, pages);
  else
    out.write(command ? short_help(pages[0], help_width()) : main_help());
  out.flush();
  return Exit::kOk;
}

}  // namespace mckpt::impl
