// A help page as text. --help prints the short page, which fits a screen; --help-all prints the whole one.
//
//   mckpt ls - list tensors
//
//   Usage: mckpt ls [OPTIONS] PATH
//
//     A paragraph of the description, broken into lines.
//
//   Options
//     -j, --threads N   what the option does, broken into lines that
//                       begin in one column
//
//   Examples
//     mckpt ls model.safetensors
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace mckpt::impl {

struct HelpPage;

// Lines are at most `width` columns long, except examples, which can be copied as they are, and single words
// that are longer. The short page has the first paragraph, the common options and three examples.
std::string short_help(const HelpPage& page, std::size_t width);
std::string whole_help(const HelpPage& page, std::size_t width);

// A line of a table with two columns. Rows under one heading are printed together, headings in the order of
// their first row.
struct HelpRow {
  std::string heading, left, text;
};
std::string title_text(std::string_view program, std::string_view summary, std::string_view usage,
                       std::size_t width);
std::string rows_text(const std::vector<HelpRow>& rows, std::size_t width);

// The text in lines of at most `width` columns, broken at blanks. The first line continues a line that
// already has `column` columns; the following lines are indented by `indent`. There is no line end after the
// last one.
std::string wrapped(std::string_view text, std::size_t width, std::size_t column, std::size_t indent);

// The columns of help pages: $COLUMNS, or the terminal's, or 80; at most 100, which is comfortable to read.
std::size_t help_width();

}  // namespace mckpt::impl
