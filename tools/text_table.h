// Columns of text that line up.
#pragma once

#include <string>
#include <vector>

#include "tools/output.h"

namespace mckpt {

enum class Align { kLeft, kRight };

class TextTable {
 public:
  struct Column {
    std::string title;
    Align align = Align::kLeft;
  };

  explicit TextTable(std::vector<Column> columns);

  // pre: one cell for each column; what comes from files is escaped.
  void row(std::vector<std::string> cells);
  // A line of its own between rows.
  void heading(std::string text);
  // Titles first, where there are any. Columns in which every cell is empty are left out.
  void write(Output& out) const;

 private:
  struct Line {
    bool heading;
    std::vector<std::string> cells;
  };

  std::string aligned(const std::vector<std::string>& cells, const std::vector<std::size_t>& widths) const;

  std::vector<Column> columns_;
  std::vector<Line> lines_;
};

// Characters that the text takes on a terminal, where each takes one cell. pre: the text is UTF-8.
std::size_t display_width(std::string_view text);

}  // namespace mckpt
