// The text of a help page: usage, description, options in two columns, examples.
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

#include <string>
#include <string_view>
#include <vector>

namespace mckpt::impl {

// The parts of a page, in the order in which they are printed. Options under one heading are printed
// together, headings in the order of their first option.
struct HelpPage {
  struct Paragraph {
    std::string name, text;  // without a name: running text; with one: a line of a list
  };
  struct Option {
    std::string heading, left, help;
  };

  std::string summary;
  std::vector<Paragraph> description;
  std::vector<Option> options;
  std::vector<std::string> examples;
};

// The page of `command`, or that of mckpt itself where the name is empty. Lines are at most `width` columns long,
// except examples, which can be copied as they are, and single words that are longer.
std::string help_text(const HelpPage& page, std::string_view command, std::string_view usage,
                      std::size_t width);

// The text in lines of at most `width` columns, broken at blanks. The first line continues a line that already
// has `column` columns; the following lines are indented by `indent`. There is no line end after the last one.
std::string wrapped(std::string_view text, std::size_t width, std::size_t column, std::size_t indent);

// The columns of help pages: $COLUMNS, or the terminal's, or 80; at most 100, which is comfortable to read.
std::size_t help_width();

}  // namespace mckpt::impl
