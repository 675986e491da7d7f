// Columns of text that line up, for lists that people read.
#pragma once

#include <string>
#include <vector>

#include "tools/output.h"

namespace mckpt {

class Table {
 public:
  enum class Align { kLeft, kRight };
  struct Column {
    std::string title;
    Align align = Align::kLeft;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // pre: one cell a column. Cells are shown as they are: names from files are escaped by the caller.
  void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  // Writes the titles in bold (none where all are empty) and the rows.
  void write(Output& out) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// How many columns of a terminal the text takes: one a character.
std::size_t shown_width(std::string_view text);

}  // namespace mckpt
