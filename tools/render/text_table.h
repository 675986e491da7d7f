// Columns of text that line up:
//
//   TextTable table({{"name", Align::kLeft}, {"bytes", Align::kRight}});
//   table.row({"embed", "1,024"});             name   bytes
//   table.row({"norm", "32"});                 embed  1,024
//   table.write(out);                          norm      32
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mckpt::impl {

class Output;

enum class Align { kLeft, kRight };

// All cells are kept until write(), because the widths depend on all of them; write_made() keeps a part of
// them.
class TextTable {
 public:
  struct Column {
    std::string title;
    Align align = Align::kLeft;
    bool text = false;  // sentences, which may be broken where the table is too wide for the terminal
  };

  explicit TextTable(std::vector<Column> columns);

  // pre: one cell for each column; what comes from files is escaped.
  void row(const std::vector<std::string>& cells);
  // Adds a row cell by cell, for long tables; expect() reserves room for the `rows` rows that write_made()
  // makes.
  void expect(std::size_t rows);
  void cell(std::string_view text);
  // Adds the cell that write(std::string&) appends, so that no text is made beside the table's own.
  template <typename Write>
  void cell_by(Write&& write) {
    std::size_t begin = text_.size();
    write(text_);
    close_cell(begin);
  }
  void end_row();
  // A line of its own between rows.
  void heading(std::string_view text);
  // Titles first, where there are any. Columns in which every cell is empty are left out. A table that is
  // wider than the terminal is folded: nothing is cut.
  void write(Output& out) const;
  // Writes the rows that make() adds. It is called twice for a long table, of which a part at a time is kept:
  // for the widths, and to be written. pre: there are no other rows, and no headings.
  void write_made(Output& out, const std::function<void()>& make);

 private:
  struct Cell {
    std::size_t begin;
    std::uint32_t bytes, width;
  };
  struct Line {
    bool heading;
    std::size_t end;  // of its cells
  };

  void close_cell(std::size_t begin);
  std::string_view text(const Cell& c) const { return std::string_view(text_).substr(c.begin, c.bytes); }
  struct Form;
  Form form_for(std::size_t width) const;
  std::vector<std::size_t> cell_widths() const;
  std::vector<std::size_t> column_widths() const;
  void write_lines(Output& out, const Form& form, std::size_t begin) const;
  void forget_rows();
  std::span<const Cell> cells_of(std::size_t line) const;
  void append_row(std::string& out, std::span<const Cell> row, const Form& form, std::size_t width) const;
  // The cells of the columns from `begin` to `end`.
  void append_aligned(std::string& out, std::span<const Cell> row, std::span<const std::size_t> widths,
                      std::size_t begin, std::size_t end) const;

  std::vector<Column> columns_;
  std::string text_;  // of all cells: one after the other they take a table of 100,000 lines no time
  std::vector<Cell> cells_;
  std::vector<Line> lines_;             // the first one has the titles
  std::vector<std::size_t> forgotten_;  // the widths of rows that are no longer kept
  std::function<void()> when_full_;
};

// Characters that the text takes on a terminal, where each takes one cell. pre: the text is UTF-8.
std::size_t display_width(std::string_view text);

}  // namespace mckpt::impl
