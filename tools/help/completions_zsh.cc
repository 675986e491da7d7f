// The script for zsh: a function with the specs of _arguments for each command and mode, which are called by
// the functions of the word before.
//
//   '(-n --dry-run)'{-n,--dry-run}'[show what would be done]'
//   '*--include=[convert only tensors whose whole name matches]:GLOB: '
//   '1:SRC:_files'
#include "core/base/text.h"
#include "tools/help/completions.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kBegin = R"zsh(#compdef mckpt
# Completion of mckpt for zsh, made by `mckpt completions zsh`.

_mckpt_words_or_files() { _alternative "words:value:($*)" 'files:file:_files' }

)zsh";

// A colon or bracket would end the part of a spec that it is in.
std::string escaped_spec(std::string_view text) {
  std::string out;
  for (char c : text) out += c == ':' || c == '[' || c == ']' || c == '\\' ? cat("\\", c) : std::string(1, c);
  return out;
}

// The completion of a value; a blank: none.
std::string action(const HelpPage::Row& row) {
  std::string words = joined(row.words);
  if (row.takes() == Takes::kPath) return words.empty() ? "_files" : cat("_mckpt_words_or_files ", words);
  if (row.takes() == Takes::kFolder) return "_files -/";
  return words.empty() ? " " : cat("(", words, ")");
}

// The specs of an option, one for each of its names.
std::string option_specs(const HelpPage::Row& row) {
  std::string front = row.several ? "*" : "", names;
  if (row.names.size() > 1 && !row.several) front = cat("(", joined(row.names), ")");
  std::string value = row.value.empty()
                          ? ""
                          : cat(row.optional_value ? "::" : ":", escaped_spec(row.value), ":", action(row));
  std::string out;
  for (const std::string& name : row.names) {
    bool is_long = name.starts_with("--");
    std::string_view joint = row.value.empty() ? "" : row.optional_value ? "=-" : is_long ? "=" : "+";
    out += cat(" \\\n    ",
               shell_quoted(cat(front, name, joint, "[", escaped_spec(brief(row.help)), "]", value)));
  }
  return out;
}

std::string function_name(std::string_view command) {
  std::string out = "_mckpt_";
  for (char c : command) out += c == ' ' || c == '-' ? '_' : c;
  return out;
}

// The function that completes an argument whose values the first one decides.
std::string after_name(const HelpPage& page, const HelpPage::Row& row) {
  return cat(function_name(page.command), "_", row.value);
}

std::string after_functions(const HelpPage& page) {
  std::string out;
  for (const HelpPage::Row* row : page.arguments()) {
    if (row->words_after.empty()) continue;
    out += cat(after_name(page, *row), "() {\n  case $line[1] in\n");
    for (const auto& [first, words] : row->words_after)
      out += cat("  ", first, ") ", words.empty() ? ":" : cat("compadd \"$@\" -- ", joined(words)), " ;;\n");
    const std::string otherwise = action(*row);
    out += cat("  *) ", otherwise == " " ? ":" : cat(otherwise, " \"$@\""), " ;;\n  esac\n}\n");
  }
  return out;
}

std::string argument_specs(const HelpPage& page) {
  std::string out;
  int number = 0;
  for (const HelpPage::Row* row : page.arguments())
    out +=
        cat(" \\\n    ", shell_quoted(cat(row->several ? std::string("*") : cat(++number),
                                          row->required ? ":" : "::", escaped_spec(row->value), ":",
                                          row->words_after.empty() ? action(*row) : after_name(page, *row))));
  return out;
}

std::string page_function(const HelpPage& page) {
  std::string out = cat(after_functions(page), function_name(page.command), "() {\n  _arguments -s -S :");
  for (const HelpPage::Row* row : page.options()) out += option_specs(*row);
  return cat(out, argument_specs(page), "\n}\n");
}

// A function that completes the next word from `pages`, or hands on to the function of the page that it
// names. `skipped`: what the names of pages begin with.
std::string choosing_function(std::string_view name, const HelpPage& options, std::size_t skipped,
                              std::span<const HelpPage* const> pages) {
  std::string specs, list, cases;
  for (const HelpPage::Row* row : options.options())
    if (row->global()) specs += option_specs(*row);
  for (const HelpPage* page : pages) {
    std::string word = page->command.substr(skipped);
    list += cat("    ", shell_quoted(cat(word, ":", escaped_spec(page->summary))), "\n");
    cases += cat("    ", word, ") ", function_name(page->command), " ;;\n");
  }
  return cat(name,
             "() {\n  local context state state_descr line\n  typeset -A opt_args\n  local -a words_here\n",
             "  words_here=(\n", list, "  )\n  _arguments -C -s -S :", specs,
             " \\\n    '1: :->word' \\\n    '*:: :->rest'\n", "  case $state in\n",
             "  word) _describe -t commands word words_here ;;\n  rest)\n    case $words[1] in\n", cases,
             "    esac ;;\n  esac\n}\n");
}

}  // namespace

std::string zsh_completions(std::span<const HelpPage> pages) {
  std::string out(kBegin);
  std::vector<const HelpPage*> commands;
  for (const CompletedCommand& c : completed_commands(pages)) {
    commands.push_back(c.page);
    for (const HelpPage* mode : c.modes) out += page_function(*mode);
    out += c.modes.empty() ? page_function(*c.page)
                           : choosing_function(function_name(c.page->command), *c.page,
                                               c.page->command.size() + 1, c.modes);
  }
  out += choosing_function("_mckpt", pages.back(), 0, commands);
  // Loaded from $fpath, the file is the function; sourced, it declares it.
  return cat(out, "if [[ $funcstack[1] == _mckpt ]]; then _mckpt \"$@\"; else compdef _mckpt mckpt; fi\n");
}

}  // namespace mckpt::impl
