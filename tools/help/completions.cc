// The table of shells, and what their scripts share.
#include "tools/help/completions.h"

#include <algorithm>

#include "core/base/text.h"

namespace mckpt::impl {
namespace {

constexpr Shell kShells[] = {
    {"bash", bash_completions}, {"zsh", zsh_completions}, {"fish", fish_completions}};

}  // namespace

std::span<const Shell> completed_shells() { return kShells; }

std::vector<CompletedCommand> completed_commands(std::span<const HelpPage> pages) {
  std::vector<CompletedCommand> out;
  for (const HelpPage& page : pages) {
    if (page.command.find(' ') == std::string::npos)
      out.push_back({&page, {}});
    else
      out.back().modes.push_back(&page);
  }
  return out;
}

std::string brief(std::string_view help) {
  constexpr std::string_view kEnds[] = {"; ", ": ", " (", ", as in "};
  std::size_t end = help.size();
  for (std::string_view mark : kEnds) end = std::min(end, help.find(mark));
  return std::string(help.substr(0, end));
}

std::string shell_quoted(std::string_view text) {
  std::string out = "'";
  for (char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string joined(std::span<const std::string> words, std::string_view between) {
  std::string out;
  for (const std::string& word : words) out += cat(out.empty() ? "" : between, word);
  return out;
}

}  // namespace mckpt::impl
