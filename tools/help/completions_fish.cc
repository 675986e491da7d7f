// The script for fish: a line for each option of each command, under the condition that the line is one of
// that command.
//
//   complete -c mckpt -n '__mckpt_at roundtrip' -l device -x -a 'cpu cuda' -d 'the device that holds the model'
#include <algorithm>

#include "core/base/text.h"
#include "tools/help/completions.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kBegin = R"(# Completion of mckpt for fish, made by `mckpt completions fish`.

# Whether the line is of this command, or of this command and mode; without arguments, whether it has no command yet.
function __mckpt_at
    set -l words (commandline -opc)
    set -e words[1]
    set -l at
    set -l skip no
    for word in $words
        if test $skip = yes
            set skip no
            continue
        end
        switch $word
            case --color --progress
                set skip yes
            case '-*'
            case '*'
                set -a at $word
                test (count $at) = 2; and break
                contains -- $word $__mckpt_with_modes; or break
        end
    end
    test "$at" = "$argv"
end

complete -c mckpt -f
)";

// How a value is completed: -x takes no files, -F takes them.
std::string value_words(const HelpPage::Row& row) {
  if (row.value.empty() || row.optional_value) return "";
  std::string known = row.words.empty() ? "" : cat(" -a ", shell_quoted(joined(row.words)));
  if (row.takes() == Takes::kPath) return cat(" -r -F", known);
  if (row.takes() == Takes::kFolder) return " -x -a '(__fish_complete_directories)'";
  return cat(" -x", known);
}

// The lines of an argument's values. Where the first argument decides them, the word has to be on the line.
std::string argument_lines(std::string_view command, const HelpPage::Row& row) {
  std::string lines, decided;
  const auto line = [&](std::string_view more, std::string_view what) {
    lines += cat("complete -c mckpt -n ", shell_quoted(cat("__mckpt_at ", command, more)), what, "\n");
  };
  for (const auto& [first, words] : row.words_after) {
    decided += cat(" ", first);
    if (!words.empty())
      line(cat("; and __fish_seen_subcommand_from ", first), cat(" -a ", shell_quoted(joined(words))));
  }
  if (!row.words.empty()) line("", cat(" -a ", shell_quoted(joined(row.words))));
  if (row.takes() == Takes::kPath || row.takes() == Takes::kFolder)
    line(decided.empty() ? "" : cat("; and not __fish_seen_subcommand_from", decided), " -F");
  return lines;
}

std::string option_line(std::string_view condition, const HelpPage::Row& row) {
  std::string out = cat("complete -c mckpt", condition);
  for (const std::string& name : row.names)
    out += name.starts_with("--") ? cat(" -l ", name.substr(2)) : cat(" -s ", name.substr(1));
  return cat(out, value_words(row), " -d ", shell_quoted(brief(row.help)), "\n");
}

std::string condition(std::string_view command) {
  return cat(" -n ", shell_quoted(cat("__mckpt_at ", command)));
}

// A command or mode as a word that can follow. `skipped`: what its name begins with.
std::string name_line(std::string_view where, const HelpPage& page, std::size_t skipped) {
  return cat("complete -c mckpt", where, " -a ", page.command.substr(skipped), " -d ",
             shell_quoted(page.summary), "\n");
}

std::string page_lines(const HelpPage& page) {
  std::string out, where = condition(page.command);
  for (const HelpPage::Row* row : page.arguments())
    if (std::string lines = argument_lines(page.command, *row); out.find(lines) == out.npos) out += lines;
  for (const HelpPage::Row* row : page.options())
    if (!row->global()) out += option_line(where, *row);
  return out;
}

}  // namespace

std::string fish_completions(std::span<const HelpPage> pages) {
  std::string with_modes, lines;
  for (const HelpPage::Row* row : pages.back().options())
    if (row->global()) lines += option_line("", *row);
  lines += "complete -c mckpt -n __mckpt_at -s V -l version -d 'print the version'\n";
  for (const CompletedCommand& c : completed_commands(pages)) {
    lines += name_line(" -n __mckpt_at", *c.page, 0);
    if (c.modes.empty()) lines += page_lines(*c.page);
    if (!c.modes.empty()) with_modes += cat(" ", c.page->command);
    for (const HelpPage* mode : c.modes) {
      lines += name_line(condition(c.page->command), *mode, c.page->command.size() + 1);
      lines += page_lines(*mode);
    }
  }
  return cat(kBegin, "set -g __mckpt_with_modes", with_modes, "\n", lines);
}

}  // namespace mckpt::impl
