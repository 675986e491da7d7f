// Text without any character that Markdown gives a meaning stays as it is; all other text is a code span: no
// escape covers what GitHub makes of plain text, such as addresses and names of people.
#include "io/card/inert.h"

#include <algorithm>

#include "core/base/text.h"

namespace mckpt::impl {
namespace {

constexpr std::size_t kMostBytes = 1000;
// Tags, entities, links and images, code, emphasis, escapes, headings, people, mathematics, struck text.
constexpr std::string_view kLive = "<>&[]!`*\\#@$~{}^";

// Addresses become links without any mark, and underscores around a word are emphasis.
bool is_live(std::string_view text) {
  if (text.find_first_of(kLive) != text.npos || text.find("__") != text.npos) return true;
  if (text.starts_with('_') || text.starts_with('-') || text.starts_with('+') || text.starts_with('='))
    return true;
  std::string low(text);
  std::ranges::transform(low, low.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return low.find(":/") != low.npos || low.find("www.") != low.npos || low.find(" _") != low.npos ||
         low.find("mailto:") != low.npos || low.find("xmpp:") != low.npos;
}

// The longest run of backticks: a code span is closed by a run of the length that opened it.
std::size_t longest_run(std::string_view text) {
  std::size_t most = 0, run = 0;
  for (char c : text) most = std::max(most, run = c == '`' ? run + 1 : 0);
  return most;
}

// A blank at each end is taken away again by readers; without it a backtick at the end would join the marks.
std::string code_span(std::string_view text) {
  const std::string marks(longest_run(text) + 1, '`');
  const bool pad =
      text.starts_with('`') || text.ends_with('`') || text.starts_with(' ') || text.ends_with(' ');
  return cat(marks, pad ? " " : "", text, pad ? " " : "", marks);
}

}  // namespace

std::string inert(std::string_view text, MarkdownPlace place) {
  const std::string line = escaped(text, kMostBytes);
  const bool live = is_live(line);
  if (place == MarkdownPlace::kLine) return live ? code_span(line) : line;
  // A bar ends a cell, in a code span too, and readers differ in what a backslash in front of it does where
  // another backslash is in front of that: a code span shows a bar as other odd bytes are shown.
  std::string cell;
  for (char c : line) cell += c == '|' ? std::string(live ? "\\x7c" : "\\|") : std::string(1, c);
  return live ? code_span(cell) : cell;
}

}  // namespace mckpt::impl
