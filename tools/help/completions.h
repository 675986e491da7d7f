// Completion of command lines by shells, made of the help pages of all commands: a script for each shell,
// which the shell loads once. Commands, modes, options and known values are in the script; files are found by
// the shell.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/help/help_page.h"

namespace mckpt::impl {

struct Shell {
  std::string_view name;
  std::string (*script)(std::span<const HelpPage>);
};

std::span<const Shell> completed_shells();

std::string bash_completions(std::span<const HelpPage> pages);
std::string zsh_completions(std::span<const HelpPage> pages);
std::string fish_completions(std::span<const HelpPage> pages);

// The common part of the scripts: the commands, each with its modes.
struct CompletedCommand {
  const HelpPage* page;
  std::vector<const HelpPage*> modes;
};
std::vector<CompletedCommand> completed_commands(std::span<const HelpPage> pages);
// The first clause of a help text, for lists beside the words themselves.
std::string brief(std::string_view help);
// 'text', for any shell.
std::string shell_quoted(std::string_view text);
std::string joined(std::span<const std::string> words, std::string_view between = " ");

}  // namespace mckpt::impl
