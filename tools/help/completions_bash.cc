// The script for bash: four tables as case statements, and one function that walks over the words of the
// line.
//
//   __mckpt_options    'verify') echo '--against --threads ...' ;;
//   __mckpt_value      'roundtrip --device') known='cpu cuda' ;;
//   __mckpt_argument   'cat 0') kind=path ;;
//   __mckpt_after      'mappings 1 draw') known='qkv gated_mlp' ;;
//
// bash cuts --name=value into three words at the equals sign.
#include <map>

#include "core/base/text.h"
#include "tools/help/completions.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kBegin = R"(# Completion of mckpt for bash, made by `mckpt completions bash`.

)";

constexpr std::string_view kEnd = R"(
# Completes the word `cur` by what is known of it.
__mckpt_reply() {
  local IFS=$' \n'
  [[ -z $known ]] || COMPREPLY=($(compgen -W "$known" -- "$cur")) || true
  case $kind in
  path) mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$cur") ;;
  folder) mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -d -- "$cur") ;;
  *) return 0 ;;
  esac
  compopt -o filenames 2>/dev/null || true
}

_mckpt() {
  local cur=${COMP_WORDS[COMP_CWORD]} command= option= ended= kind= known= first= count=0 i word
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    if [[ $word == '=' ]]; then
      option=${COMP_WORDS[i - 1]}
    elif [[ -n $option ]]; then
      option=
    elif [[ $word == '--' && -z $ended ]]; then
      ended=yes
    elif [[ $word == -* && -z $ended ]]; then
      ! __mckpt_value "$command" "$word" || option=$word
    elif [[ -z $command ]]; then
      command=$word
    elif [[ -n $(__mckpt_modes "$command") ]]; then
      command+=" $word"
    else
      ((count)) || first=$word
      count=$((count + 1))
    fi
  done
  if [[ $cur == '=' ]]; then
    option=${COMP_WORDS[COMP_CWORD - 1]} cur=
  fi
  kind= known=
  if [[ -n $option ]]; then
    ! __mckpt_value "$command" "$option" || __mckpt_reply
  elif [[ $cur == -* && -z $ended ]]; then
    known=$(__mckpt_options "$command")
    __mckpt_reply
  elif [[ -z $command ]]; then
    known=$(__mckpt_commands)
    __mckpt_reply
  else
    known=$(__mckpt_modes "$command")
    [[ -n $known ]] || __mckpt_after "$command" $count "$first" || __mckpt_argument "$command" $count || true
    __mckpt_reply
  fi
}

complete -F _mckpt mckpt
)";

// "kind=path known='a b'"; "" where nothing can be completed.
std::string assignments(const HelpPage::Row& row) {
  std::string out;
  if (row.takes() == Takes::kPath || row.takes() == Takes::kFolder)
    out += cat("kind=", takes_name(row.takes()));
  if (!row.words.empty()) out += cat(out.empty() ? "" : " ", "known=", shell_quoted(joined(row.words)));
  return out.empty() ? ":" : out;
}

std::string function(std::string_view name, std::string_view subject, std::string_view cases) {
  return cat("__mckpt_", name, "() {\n  case ", subject, " in\n", cases, "  esac\n}\n");
}

std::string list_function(std::string_view name, const std::vector<std::string>& words) {
  return cat("__mckpt_", name, "() { echo ", shell_quoted(joined(words)), "; }\n");
}

std::string options_table(std::span<const HelpPage> pages) {
  std::string cases;
  for (const HelpPage& page : pages) {
    std::vector<std::string> names;
    for (const HelpPage::Row* row : page.options())
      names.insert(names.end(), row->names.begin(), row->names.end());
    cases += cat("  ", shell_quoted(page.command), ") echo ", shell_quoted(joined(names)), " ;;\n");
    // The words that may stand before a command.
    if (&page != &pages.back()) continue;
    names.clear();
    for (const HelpPage::Row* row : page.options())
      if (row->global()) names.insert(names.end(), row->names.begin(), row->names.end());
    cases += cat("  '') echo ", shell_quoted(joined(names)), " -V --version ;;\n");
  }
  return function("options", "$1", cases);
}

// An option whose values are the same wherever it is has one row.
std::string values_table(std::span<const HelpPage> pages) {
  std::map<std::string, std::map<std::string, std::vector<std::string>>> by_name;  // -> values -> commands
  for (const HelpPage& page : pages)
    for (const HelpPage::Row* row : page.options()) {
      if (row->value.empty() || row->optional_value) continue;
      for (const auto* names : {&row->names, &row->others})
        for (const std::string& name : *names) by_name[name][assignments(*row)].push_back(page.command);
    }
  std::map<std::string, std::vector<std::string>> patterns;  // by values
  for (const auto& [name, by_values] : by_name)
    for (const auto& [values, commands] : by_values) {
      if (by_values.size() == 1) {
        patterns[values].push_back(cat("*", shell_quoted(cat(" ", name))));
        continue;
      }
      for (const std::string& command : commands)
        patterns[values].push_back(shell_quoted(cat(command, " ", name)));
    }
  std::string cases;
  for (const auto& [values, list] : patterns) cases += cat("  ", joined(list, " | "), ") ", values, " ;;\n");
  return function("value", "\"$1 $2\"", cases + "  *) return 1 ;;\n");
}

std::string arguments_table(std::span<const HelpPage> pages) {
  std::string cases;
  for (const HelpPage& page : pages) {
    std::vector<const HelpPage::Row*> arguments = page.arguments();
    for (std::size_t i = 0; i < arguments.size(); i++) {
      std::string number = arguments[i]->several ? cat(shell_quoted(cat(page.command, " ")), "*")
                                                 : shell_quoted(cat(page.command, " ", i));
      if (std::string what = assignments(*arguments[i]); what != ":")
        cases += cat("  ", number, ") ", what, " ;;\n");
    }
  }
  return function("argument", "\"$1 $2\"", cases);
}

// Arguments whose values the first one decides.
std::string after_table(std::span<const HelpPage> pages) {
  std::string cases;
  for (const HelpPage& page : pages) {
    std::vector<const HelpPage::Row*> arguments = page.arguments();
    for (std::size_t i = 0; i < arguments.size(); i++)
      for (const auto& [first, words] : arguments[i]->words_after)
        cases += cat("  ", shell_quoted(cat(page.command, " ", i, " ", first)),
                     ") known=", shell_quoted(joined(words)), " ;;\n");
  }
  return function("after", "\"$1 $2 $3\"", cases + "  *) return 1 ;;\n");
}

}  // namespace

std::string bash_completions(std::span<const HelpPage> pages) {
  std::vector<std::string> commands;
  std::string modes;
  for (const CompletedCommand& c : completed_commands(pages)) {
    commands.push_back(c.page->command);
    std::vector<std::string> names;
    for (const HelpPage* mode : c.modes) names.push_back(mode->command.substr(c.page->command.size() + 1));
    if (!names.empty())
      modes += cat("  ", shell_quoted(c.page->command), ") echo ", shell_quoted(joined(names)), " ;;\n");
  }
  return cat(kBegin, list_function("commands", commands), function("modes", "$1", modes),
             options_table(pages), values_table(pages), arguments_table(pages), after_table(pages), kEnd);
}

}  // namespace mckpt::impl
