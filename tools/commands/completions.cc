// mckpt completions SHELL: the script by which a shell completes the command line of mckpt.
//
//   source <(mckpt completions bash)                              in ~/.bashrc
//   mckpt completions zsh > ~/.zfunc/_mckpt                       a folder of $fpath
//   mckpt completions fish > ~/.config/fish/completions/mckpt.fish
#include "tools/help/completions.h"

#include "tools/commands/command_table.h"
#include "tools/commands/commands.h"
#include "tools/options/command_line.h"
#include "tools/render/answer_json.h"

namespace mckpt::impl {

Exit completions_command(CommandLine& line) {
  std::string name;
  std::vector<std::string> names;
  for (const Shell& shell : completed_shells()) names.emplace_back(shell.name);
  line.positional("SHELL", name, "the shell that loads the script: bash, zsh or fish")
      .required()
      .choices(names);
  line.description(
      "Prints a script that completes commands, modes, options, their known values, and files. An installed mckpt has it where the shell looks by itself.");
  line.example("source <(mckpt completions bash)");
  line.example("mckpt completions zsh > _mckpt");
  line.example("mckpt completions fish > mckpt.fish");
  line.parse();
  std::string script;
  for (const Shell& shell : completed_shells())
    if (shell.name == name) script = shell.script(all_pages());
  Output out(line.flags());
  out.keep_lines();
  if (out.json()) {
    AnswerJson json(out);
    json.begin_answer("completions", true).field("shell", name).field("script", script);
    json.end_answer();
  } else {
    out.write(script);
  }
  out.flush();
  return Exit::kOk;
}

}  // namespace mckpt::impl
