// Breaks the texts of a help page into lines that fit the terminal. Names are at the left, texts at the right
// in one column; a name that is longer than a third of the line has a line of its own.
#include "tools/help/help_text.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "core/base/text.h"
#include "tools/help/help_page.h"

namespace mckpt::impl {
namespace {

constexpr std::size_t kMargin = 2, kGap = 2, kNarrowest = 40, kWidest = 100, kShortExamples = 3;

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

// Paragraphs with a blank line before each; the lines of a list follow each other. The short page has the
// first paragraph and the list.
std::string description_text(const HelpPage& page, bool whole, std::size_t width) {
  std::vector<HelpPage::Paragraph> shown, list;
  for (const HelpPage::Paragraph& p : page.description) {
    bool first = shown.empty() || !shown.back().name.empty();
    if (whole || !p.name.empty() || first) shown.push_back(p);
    if (!p.name.empty()) list.push_back(p);
  }
  std::size_t column = text_column(
      list, [](const auto& p) -> const std::string& { return p.name; }, width);
  std::string out;
  bool in_list = false;
  for (const HelpPage::Paragraph& p : shown) {
    if (p.name.empty() || !in_list) out += "\n";
    in_list = !p.name.empty();
    out += in_list ? two_columns(p.name, p.text, column, width)
                   : cat(std::string(kMargin, ' '), wrapped(p.text, width, kMargin, kMargin), "\n");
  }
  return out;
}

std::vector<HelpRow> rows_of(const HelpPage& page, bool whole) {
  std::vector<HelpRow> rows;
  for (const HelpPage::Row& row : page.rows) {
    if (!whole && !row.is_argument() && !row.common) continue;
    // So few options need one heading.
    std::string heading = whole || row.is_argument() ? row.heading : "Common options";
    rows.push_back({heading, row.left(), row.help});
  }
  return rows;
}

// The words of a command line; an option and the word behind it are one. Spaces inside quotes are part of a
// word.
std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  char quote = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= line.size(); i++) {
    if (i == line.size() || (line[i] == ' ' && !quote)) {
      std::string_view word = line.substr(begin, i - begin);
      const bool option = word.starts_with("--") && word.find(' ') == word.npos && i + 1 < line.size();
      if (option && line[i + 1] != '-') continue;
      words.push_back(word);
      begin = i + 1;
    } else if (quote ? line[i] == quote : line[i] == '\'' || line[i] == '"') {
      quote = quote ? 0 : line[i];
    }
  }
  return words;
}

// A command that is longer than a line goes on in the next one, behind a backslash, as a shell reads it.
std::string example_text(std::string_view example, std::size_t width) {
  constexpr std::string_view kGoesOn = " \\";
  std::string out(kMargin, ' ');
  if (kMargin + example.size() <= width) return cat(out, example, "\n");
  const std::vector<std::string_view> words = words_of(example);
  const std::string indent(kMargin + 4, ' ');
  std::size_t column = kMargin;
  for (std::size_t i = 0; i < words.size(); i++) {
    const std::size_t behind = i + 1 < words.size() ? kGoesOn.size() : 0;
    if (i > 0 && column + 1 + words[i].size() + behind > width) {
      out += cat(kGoesOn, "\n", indent);
      column = indent.size();
    } else if (i > 0) {
      out += ' ';
      column++;
    }
    out += words[i];
    column += words[i].size();
  }
  return cat(out, "\n");
}

std::string page_text(const HelpPage& page, bool whole, std::size_t width) {
  std::string out =
      title_text(cat("mckpt ", page.command), page.summary, cat("Usage: ", page.usage()), width);
  out += description_text(page, whole, width) + rows_text(rows_of(page, whole), width);
  std::size_t examples =
      whole ? page.examples.size() : std::min<std::size_t>(kShortExamples, page.examples.size());
  if (examples > 0) out += "\nExamples\n";
  for (std::size_t i = 0; i < examples; i++) out += example_text(page.examples[i], width);
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

std::string short_help(const HelpPage& page, std::size_t width) {
  std::string rest =
      cat("`mckpt ", page.command, " --help-all` describes all ", page.options().size(), " options.");
  return cat(page_text(page, false, width), "\n", wrapped(rest, width, 0, 0), "\n");
}

std::string whole_help(const HelpPage& page, std::size_t width) { return page_text(page, true, width); }

std::string title_text(std::string_view program, std::string_view summary, std::string_view usage,
                       std::size_t width) {
  std::string title = cat(program, " - ");
  return cat(title, wrapped(summary, width, title.size(), kMargin), "\n\n",
             wrapped(usage, width, 0, std::string_view("Usage: ").size()), "\n");
}

// All rows of a heading together, also if they were declared in several places.
std::string rows_text(const std::vector<HelpRow>& rows, std::size_t width) {
  std::size_t column = text_column(
      rows, [](const HelpRow& row) -> const std::string& { return row.left; }, width);
  std::string out;
  std::vector<std::string> headings;
  for (const HelpRow& row : rows)
    if (std::ranges::find(headings, row.heading) == headings.end()) headings.push_back(row.heading);
  for (const std::string& heading : headings) {
    out += cat("\n", heading, "\n");
    for (const HelpRow& row : rows)
      if (row.heading == heading) out += two_columns(row.left, row.text, column, width);
  }
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
