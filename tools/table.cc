#include "tools/table.h"

#include <algorithm>

namespace mckpt {
namespace {

void append_padded(std::string& line, std::string_view cell, std::size_t width, Table::Align align,
                   bool last) {
  std::string blanks(width - std::min(width, shown_width(cell)), ' ');
  if (align == Table::Align::kRight) line += blanks;
  line += cell;
  if (align == Table::Align::kLeft && !last) line += blanks;
}

}  // namespace

std::size_t shown_width(std::string_view text) {
  std::size_t width = 0;
  for (char c : text) width += (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  return width;
}

void Table::write(Output& out) const {
  std::vector<std::size_t> widths;
  bool titled = false;
  for (const Column& c : columns_) {
    widths.push_back(shown_width(c.title));
    titled |= !c.title.empty();
  }
  for (const auto& cells : rows_)
    for (std::size_t i = 0; i < cells.size(); i++) widths[i] = std::max(widths[i], shown_width(cells[i]));
  std::string line;
  auto append = [&](std::size_t i, std::string_view cell) {
    if (i > 0) line += "  ";
    append_padded(line, cell, widths[i], columns_[i].align, i + 1 == columns_.size());
  };
  if (titled) {
    for (std::size_t i = 0; i < columns_.size(); i++) append(i, columns_[i].title);
    out.line(out.styled(Style::kBold, line));
  }
  for (const auto& cells : rows_) {
    line.clear();
    for (std::size_t i = 0; i < cells.size(); i++) append(i, cells[i]);
    out.line(line);
  }
}

}  // namespace mckpt
