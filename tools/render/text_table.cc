// Collects cells, then prints them in columns of the width of their longest cell. Two blanks are between
// columns; blanks at the end of a line are not written. Width is counted in characters, so names in UTF-8
// line up.
#include "tools/render/text_table.h"

#include <algorithm>

#include "core/base/text.h"
#include "tools/render/fold_text.h"
#include "tools/render/output.h"

namespace mckpt::impl {
namespace {

constexpr std::size_t kIndent = 2;                       // of what is below a name
constexpr std::size_t kMostKept = std::size_t{1} << 17;  // rows; tables of real models are shorter

}  // namespace

std::size_t display_width(std::string_view text) {
  if (is_ascii(text)) return text.size();
  return std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; });
}

TextTable::TextTable(std::vector<Column> columns)
    : columns_(std::move(columns)), forgotten_(columns_.size()) {
  for (const Column& c : columns_) cell(c.title);
  end_row();
}

void TextTable::expect(std::size_t rows) {
  rows = std::min(rows, kMostKept);
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

void TextTable::end_row() {
  lines_.push_back({false, cells_.size()});
  if (when_full_ && lines_.size() > kMostKept) when_full_();
}

void TextTable::row(const std::vector<std::string>& cells) {
  for (const std::string& c : cells) cell(c);
  end_row();
}

void TextTable::heading(std::string_view text) {
  cell(text);
  lines_.push_back({true, cells_.size()});
}

void TextTable::append_aligned(std::string& out, std::span<const Cell> row,
                               std::span<const std::size_t> widths, std::size_t begin,
                               std::size_t end) const {
  std::size_t owed = 0;  // blanks, written only when something follows them
  for (std::size_t c = begin; c < std::min(end, row.size()); c++) {
    if (widths[c] == 0) continue;
    std::size_t pad = widths[c] - row[c].width;
    bool right = columns_[c].align == Align::kRight;
    if (row[c].bytes > 0) {
      out.append(owed + (right ? pad : 0), ' ').append(text(row[c]));
      owed = 0;
    }
    owed += 2 + (row[c].bytes == 0 ? widths[c] : right ? 0 : pad);
  }
}

// The widths of the columns, and how a table is folded that is wider than the terminal:
//
//   the last column      its texts are broken within the column, if the others leave it enough room
//   the first column     a longer name has a line of its own, and the rest is below it
//   stacked              the columns have as many lines as they need, and long names one of their own
struct TextTable::Form {
  std::vector<std::size_t> widths;
  std::size_t hang = 0;                // where the last column begins, if its texts are broken
  bool long_names_alone = false;       // names that are wider than the first column
  std::vector<std::size_t> stack_end;  // stacked: the column after the last one of each line
};

TextTable::Form TextTable::form_for(std::size_t width) const {
  constexpr std::size_t kLeastText = 20, kLeastName = 16;
  Form form;
  form.widths = column_widths();
  std::size_t all = 0, last = 0;
  for (std::size_t c = 0; c < form.widths.size(); c++)
    if (form.widths[c] > 0) all += form.widths[c] + (all > 0 ? 2 : 0), last = c;
  if (all <= width || last == 0) return form;
  std::size_t before_last = all - form.widths[last], after_first = all - form.widths[0];
  if (columns_[last].align == Align::kLeft && columns_[last].text && before_last + kLeastText <= width) {
    form.hang = before_last;
  } else if (after_first + kLeastName <= width) {
    form.long_names_alone = true;
    form.widths[0] = width - after_first;
  } else {
    // A short name has others beside it, and so have numbers.
    bool named = columns_[0].align == Align::kLeft && form.widths[0] > width / 2;
    if (named) form.stack_end = {1};
    std::size_t used = named ? kIndent : 0;
    for (std::size_t c = named; c <= last; c++) {
      if (form.widths[c] == 0) continue;
      if (used > kIndent && used + form.widths[c] > width) {
        form.stack_end.push_back(c);
        used = kIndent;
      }
      used += form.widths[c] + 2;
    }
    form.stack_end.push_back(last + 1);
  }
  return form;
}

std::vector<std::size_t> TextTable::cell_widths() const {
  std::vector<std::size_t> widths = forgotten_;
  for (std::size_t l = 1; l < lines_.size(); l++)
    for (std::size_t c = 0; !lines_[l].heading && c < cells_of(l).size(); c++)
      widths[c] = std::max<std::size_t>(widths[c], cells_of(l)[c].width);
  return widths;
}

std::vector<std::size_t> TextTable::column_widths() const {
  std::vector<std::size_t> widths = cell_widths();
  for (std::size_t c = 0; c < columns_.size(); c++)
    if (widths[c] > 0) widths[c] = std::max<std::size_t>(widths[c], cells_of(0)[c].width);
  return widths;
}

std::span<const TextTable::Cell> TextTable::cells_of(std::size_t line) const {
  std::size_t begin = line == 0 ? 0 : lines_[line - 1].end;
  return std::span(cells_).subspan(begin, lines_[line].end - begin);
}

// The row in one or more lines.
void TextTable::append_row(std::string& out, std::span<const Cell> row, const Form& form,
                           std::size_t width) const {
  std::span<const std::size_t> widths = form.widths;
  if (form.hang > 0) {
    std::string line;
    append_aligned(line, row, widths, 0, row.size());
    out += folded_line(line, width, form.hang);
  } else if (form.long_names_alone && row[0].width > widths[0]) {
    out.append(text(row[0])).append("\n").append(widths[0] + 2, ' ');
    append_aligned(out, row, widths, 1, row.size());
  } else if (!form.stack_end.empty()) {
    std::size_t begin = 0;
    for (std::size_t end : form.stack_end) {
      std::string line(begin == 0 ? 0 : kIndent, ' ');
      append_aligned(line, row, widths, begin, end);
      if (line.find_first_not_of(' ') != line.npos) out.append(out.empty() ? "" : "\n").append(line);
      begin = end;
    }
  } else {
    append_aligned(out, row, widths, 0, row.size());
  }
}

void TextTable::write_lines(Output& out, const Form& form, std::size_t begin) const {
  const std::size_t width = static_cast<std::size_t>(out.width());
  std::string line;
  for (std::size_t l = begin; l < lines_.size(); l++) {
    line.clear();
    if (lines_[l].heading)
      line = out.styled(Style::kDim, text(cells_of(l)[0]));
    else
      append_row(line, cells_of(l), form, width);
    out.line(l == 0 ? out.styled(Style::kBold, line) : line);
  }
}

void TextTable::write(Output& out) const {
  const bool titled = std::ranges::any_of(cells_of(0), [](const Cell& c) { return c.bytes > 0; });
  write_lines(out, form_for(static_cast<std::size_t>(out.width())), titled ? 0 : 1);
}

// Keeps the titles and the widths.
void TextTable::forget_rows() {
  forgotten_ = cell_widths();
  lines_.resize(1);
  cells_.resize(columns_.size());
  text_.resize(cells_.back().begin + cells_.back().bytes);
}

void TextTable::write_made(Output& out, const std::function<void()>& make) {
  bool whole = true;
  when_full_ = [&] { forget_rows(), whole = false; };
  make();
  when_full_ = {};
  if (whole) return write(out);
  forget_rows();
  write(out);
  const Form form = form_for(static_cast<std::size_t>(out.width()));
  when_full_ = [&] { write_lines(out, form, 1), forget_rows(); };
  make();
  write_lines(out, form, 1);
  when_full_ = {};
}

}  // namespace mckpt::impl
