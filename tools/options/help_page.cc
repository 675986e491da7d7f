// Breaks the texts of a help page into lines that fit the terminal. Names are at the left, texts at the right
// in one column; a name that is longer than a third of the line has a line of its own.
#include "tools/options/help_page.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "core/base/text.h"

namespace mckpt::impl {
namespace {

constexpr std::size_t kMargin = 2, kGap = 2, kNarrowest = 40, kWidest = 100;

// The column in which the right-hand texts begin. A third of the line is left for names; a longer name has a
// line of its own.
template <typename Rows, typename Name>
std::size_t text_column(const Rows& rows, Name name, std::size_t width) {
  std::size_t most = width / 3, widest = 0;
  for (const auto& row : rows)
    if (std::size_t n = name(row).size(); n <= most) widest = std::max(widest, n);
  return kMargin + std::max(widest, most / 2) + kGap;
}

// "  NAME    text", the text in lines from `column` on.
std::string two_columns(std::string_view name, std::string_view text, std::size_t column, std::size_t width) {
  std::string out = cat(std::string(kMargin, ' '), name);
  if (out.size() + kGap > column) out += cat("\n", std::string(column, ' '));
  std::size_t used = out.size() - (out.rfind('\n') + 1);
  if (used < column) out.append(column - used, ' ');
  return cat(out, wrapped(text, width, column, column), "\n");
}

// Paragraphs with a blank line before each; the lines of a list follow each other.
std::string description_text(const HelpPage& page, std::size_t width) {
  std::vector<HelpPage::Paragraph> list;
  for (const HelpPage::Paragraph& p : page.description)
    if (!p.name.empty()) list.push_back(p);
  std::size_t column = text_column(
      list, [](const auto& p) -> const std::string& { return p.name; }, width);
  std::string out;
  bool in_list = false;
  for (const HelpPage::Paragraph& p : page.description) {
    if (p.name.empty() || !in_list) out += "\n";
    in_list = !p.name.empty();
    out += in_list ? two_columns(p.name, p.text, column, width)
                   : cat(std::string(kMargin, ' '), wrapped(p.text, width, kMargin, kMargin), "\n");
  }
  return out;
}

// All options of a heading together, also if they were declared in several places.
std::string options_text(const HelpPage& page, std::size_t width) {
  std::size_t column = text_column(
      page.options, [](const auto& o) -> const std::string& { return o.left; }, width);
  std::string out;
  std::vector<std::string> headings;
  for (const HelpPage::Option& o : page.options)
    if (std::find(headings.begin(), headings.end(), o.heading) == headings.end())
      headings.push_back(o.heading);
  for (const std::string& heading : headings) {
    out += cat("\n", heading, "\n");
    for (const HelpPage::Option& o : page.options)
      if (o.heading == heading) out += two_columns(o.left, o.help, column, width);
  }
  return out;
}

}  // namespace

std::string wrapped(std::string_view text, std::size_t width, std::size_t column, std::size_t indent) {
  std::string out;
  bool first = true;
  while (!text.empty()) {
    std::size_t end = std::min(text.find(' '), text.size());
    std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!first && column + 1 + word.size() > width) {
      out += cat("\n", std::string(indent, ' '));
      column = indent;
    } else if (!first) {
      out += ' ';
      column++;
    }
    out += word;
    column += word.size();
    first = false;
  }
  return out;
}

// Title, usage, description, options, examples.
std::string help_text(const HelpPage& page, std::string_view command, std::string_view usage,
                      std::size_t width) {
  std::string title = cat("mckpt ", command, command.empty() ? "- " : " - ");
  std::string out = cat(title, wrapped(page.summary, width, title.size(), kMargin), "\n\n",
                        wrapped(usage, width, 0, std::string_view("Usage: ").size()), "\n");
  out += description_text(page, width) + options_text(page, width);
  if (!page.examples.empty()) out += "\nExamples\n";
  for (const std::string& e : page.examples) out += cat(std::string(kMargin, ' '), e, "\n");
  return out;
}

// COLUMNS comes before the terminal, so a script can fix the width.
std::size_t help_width() {
  std::size_t width = 0;
  if (const char* columns = std::getenv("COLUMNS"))
    std::from_chars(columns, columns + std::strlen(columns), width);
  winsize size{};
  if (width == 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) width = size.ws_col;
  if (width == 0) width = 80;
  return std::clamp(width, kNarrowest, kWidest);
}

}  // namespace mckpt::impl
