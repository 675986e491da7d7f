// Collects cells, then prints them in columns of the width of their longest cell. Two blanks are between
// columns; blanks at the end of a line are not written. Width is counted in characters, so names in UTF-8
// line up.
#include "tools/render/text_table.h"

#include <algorithm>

#include "core/base/text.h"
#include "tools/render/output.h"

namespace mckpt::impl {

std::size_t display_width(std::string_view text) {
  if (is_ascii(text)) return text.size();
  return std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; });
}

TextTable::TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {
  for (const Column& c : columns_) cell(c.title);
  end_row();
}

void TextTable::expect(std::size_t rows) {
  lines_.reserve(lines_.size() + rows);
  cells_.reserve(cells_.size() + rows * columns_.size());
}

void TextTable::cell(std::string_view text) {
  cell_by([&](std::string& to) { to += text; });
}

void TextTable::close_cell(std::size_t begin) {
  std::string_view text = std::string_view(text_).substr(begin);
  cells_.push_back(
      {begin, static_cast<std::uint32_t>(text.size()), static_cast<std::uint32_t>(display_width(text))});
}

void TextTable::end_row() { lines_.push_back({false, cells_.size()}); }

void TextTable::row(const std::vector<std::string>& cells) {
  for (const std::string& c : cells) cell(c);
  end_row();
}

void TextTable::heading(std::string_view text) {
  cell(text);
  lines_.push_back({true, cells_.size()});
}

void TextTable::append_aligned(std::string& out, std::span<const Cell> cells,
                               std::span<const std::size_t> widths) const {
  std::size_t owed = 0;  // blanks, written only when something follows them
  for (std::size_t c = 0; c < cells.size(); c++) {
    if (widths[c] == 0) continue;
    std::size_t pad = widths[c] - cells[c].width;
    bool right = columns_[c].align == Align::kRight;
    if (cells[c].bytes > 0) {
      out.append(owed + (right ? pad : 0), ' ').append(text(cells[c]));
      owed = 0;
    }
    owed += 2 + (cells[c].bytes == 0 ? widths[c] : right ? 0 : pad);
  }
}

void TextTable::write(Output& out) const {
  auto cells_of = [&](std::size_t line) {
    std::size_t begin = line == 0 ? 0 : lines_[line - 1].end;
    return std::span(cells_).subspan(begin, lines_[line].end - begin);
  };
  std::span<const Cell> titles = cells_of(0);
  std::vector<std::size_t> widths(columns_.size());
  for (std::size_t l = 1; l < lines_.size(); l++)
    for (std::size_t c = 0; !lines_[l].heading && c < cells_of(l).size(); c++)
      widths[c] = std::max<std::size_t>(widths[c], cells_of(l)[c].width);
  bool titled = false;
  for (std::size_t c = 0; c < columns_.size(); c++) {
    titled |= titles[c].bytes > 0;
    if (widths[c] > 0) widths[c] = std::max<std::size_t>(widths[c], titles[c].width);
  }
  std::string line;
  for (std::size_t l = titled ? 0 : 1; l < lines_.size(); l++) {
    line.clear();
    if (lines_[l].heading)
      line = out.styled(Style::kDim, text(cells_of(l)[0]));
    else
      append_aligned(line, cells_of(l), widths);
    out.line(l == 0 ? out.styled(Style::kBold, line) : line);
  }
}

}  // namespace mckpt::impl
