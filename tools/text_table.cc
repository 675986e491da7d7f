#include "tools/text_table.h"

#include <algorithm>

namespace mckpt {

std::size_t display_width(std::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; });
}

TextTable::TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}

void TextTable::row(std::vector<std::string> cells) { lines_.push_back({false, std::move(cells)}); }
void TextTable::heading(std::string text) { lines_.push_back({true, {std::move(text)}}); }

std::string TextTable::aligned(const std::vector<std::string>& cells,
                               const std::vector<std::size_t>& widths) const {
  std::string out;
  std::size_t owed = 0;  // blanks, written only when something follows them
  for (std::size_t c = 0; c < cells.size(); c++) {
    if (widths[c] == 0) continue;
    std::size_t pad = widths[c] - display_width(cells[c]);
    bool right = columns_[c].align == Align::kRight;
    if (!cells[c].empty()) {
      out += std::string(owed + (right ? pad : 0), ' ') + cells[c];
      owed = 0;
    }
    owed += 2 + (cells[c].empty() ? widths[c] : right ? 0 : pad);
  }
  return out;
}

void TextTable::write(Output& out) const {
  std::vector<std::size_t> widths(columns_.size());
  for (const Line& line : lines_)
    for (std::size_t c = 0; !line.heading && c < line.cells.size(); c++)
      widths[c] = std::max(widths[c], display_width(line.cells[c]));
  std::vector<std::string> titles;
  for (std::size_t c = 0; c < columns_.size(); c++) {
    titles.push_back(columns_[c].title);
    if (widths[c] > 0) widths[c] = std::max(widths[c], display_width(columns_[c].title));
  }
  bool titled = std::any_of(titles.begin(), titles.end(), [](const std::string& t) { return !t.empty(); });
  if (titled) out.line(out.styled(Style::kBold, aligned(titles, widths)));
  for (const Line& line : lines_)
    out.line(line.heading ? out.styled(Style::kDim, line.cells[0]) : aligned(line.cells, widths));
}

}  // namespace mckpt
