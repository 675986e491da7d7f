// Draws a rule with characters: the sources, then every cell. Output for `mckpt mappings draw row`:
//
//   weight                 cell 0     cell 1
//   [3, 4]                 [3, 2]     [3, 2]
//   w0  w1  w2  w3         w0  w1     w2  w3
//   w4  w5  w6  w7         w4  w5     w6  w7
//   w8  w9 w10 w11         w8  w9    w10 w11
//
// (the cells are printed below the sources). lay_out() calls the rule and looks every item of its runs up in
// the sources.
#include "mappings/picture/picture.h"

#include <algorithm>

#include "core/base/text.h"
#include "mappings/picture/layout.h"

namespace mckpt::impl {
namespace {

// A matrix for the shape: a vector is a row of squares, leading dimensions are stacked.
Panel panel_of(std::string title, const Shape& shape) {
  Panel panel{std::move(title), to_string(shape), 1, 1, 1, {}, {}};
  int rank = shape.rank();
  if (rank > 0) panel.rows = shape[0];
  if (rank > 1) panel.columns = shape[rank - 1], panel.rows = shape.items() / panel.columns;
  panel.group_rows = rank == 3 && shape[1] > 1 ? shape[1] : std::max<i64>(panel.rows, 1);
  panel.squares.resize(static_cast<std::size_t>(shape.items()));
  return panel;
}

// The sources, each item with its number and its part.
std::vector<Panel> source_panels(const RuleExample& example) {
  std::vector<Panel> panels;
  const Rule& rule = rule_named(example.rule);
  for (std::size_t slot = 0; slot < example.sources.size(); slot++) {
    const std::string title =
        rule.parts_of_sources ? cat(rule.roles[0], ", part ", slot) : std::string(rule.roles[slot]);
    panels.push_back(panel_of(title, example.sources[slot].shape));
    for (std::size_t i = 0; i < panels[slot].squares.size(); i++)
      panels[slot].squares[i].item = static_cast<i64>(i);
  }
  for (std::size_t part = 0; part < example.parts.size(); part++) {
    const ItemRun& run = example.parts[part].items;
    for (i64 i = 0; i < run.items(); i++) panels[run.slot].squares[run.at(i)].part = static_cast<i32>(part);
  }
  return panels;
}

// The items that the rule gives the cell.
Holding hold_example(const RuleExample& example, i64 cell, i64 expert) {
  RuleInput in{example.model, example.model.text,  example.sources, {cell, example.cells},
               expert,        example.padded_vocab};
  return hold(rule_named(example.rule), in);
}

// Follows the runs of the cell: each of its squares is the one of the source. Marks in the sources which
// cell has an item.
Panel cell_panel(const RuleExample& example, i64 cell, i64 expert, std::vector<Panel>& sources) {
  Holding holding = hold_example(example, cell, expert);
  const char* of = example.rule == "replicate_slice" ? "slice " : "expert ";
  std::string title = example.experts > 1 ? cat(of, expert, ", cell ", cell) : cat("cell ", cell);
  if (holding.addend != 0) title += cat(", plus ", holding.addend);
  Panel panel = panel_of(std::move(title), holding.shape.shape);
  i32 owner = holding.partition_dim < 0 ? kEveryCell : static_cast<i32>(cell);
  std::size_t at = 0;
  for (const ItemRun& run : holding.runs)
    for (i64 i = 0; i < run.items(); i++, at++) {
      if (run.slot == kPaddingSlot) continue;
      Square& from = sources[is_copy(run.slot) ? copied_slot(run.slot) : run.slot].squares[run.at(i)];
      from.cell = owner;
      panel.squares[at] = from;
    }
  if (example.split == KeySplit::kNone) return panel;
  Part part = holding.partition_dim < 0 ? Part{} : Part{cell, example.cells};
  for (const Piece& p : pieces_of(example.split, example.model, global_shape(holding, example.cells), part))
    panel.labels.push_back({p.first_row, p.rows, p.name});
  return panel;
}

// One line of a panel: its squares, and the label that begins in this line.
std::string text_row(const RuleExample& example, const Panel& panel, i64 row) {
  std::string out;
  for (i64 column = 0; column < panel.columns; column++) {
    std::string mark = mark_of(example, panel.squares[row * panel.columns + column]);
    out += std::string(mark.size() < 4 ? 4 - mark.size() : 1, ' ') + mark;
  }
  for (const RowLabel& label : panel.labels)
    if (label.first_row == row) out += cat("  ", label.text);
  return out;
}

std::vector<std::string> text_lines(const RuleExample& example, const Panel& panel) {
  std::vector<std::string> lines = {cat("  ", panel.title), cat("  ", panel.shape)};
  for (i64 row = 0; row < panel.rows; row++) {
    if (panel.gap_above(row)) lines.emplace_back();
    lines.push_back(text_row(example, panel, row));
  }
  return lines;
}

// Prints panels side by side.
void append_beside(std::string& out, const std::vector<std::vector<std::string>>& columns) {
  std::size_t height = 0;
  for (const auto& lines : columns) height = std::max(height, lines.size());
  for (std::size_t y = 0; y < height; y++) {
    std::string line;
    std::size_t x = 0;
    for (const auto& lines : columns) {
      std::size_t width = 0;
      for (const std::string& l : lines) width = std::max(width, l.size());
      line.resize(x, ' ');
      if (y < lines.size()) line += lines[y];
      x += width + 3;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
}

}  // namespace

// Cells are laid out last, because they mark their items in the sources.
Picture lay_out(const RuleExample& example) {
  Picture picture{source_panels(example), {}};
  for (i64 expert = 0; expert < example.experts; expert++)
    for (i64 cell = 0; cell < example.cells; cell++)
      picture.cells.push_back(cell_panel(example, cell, expert, picture.sources));
  return picture;
}

std::string mark_of(const RuleExample& example, const Square& square) {
  if (square.part < 0) return ".";
  return cat(example.parts[square.part].name.substr(0, 1), square.item);
}

std::string draw_text(const RuleExample& example) {
  Picture picture = lay_out(example);
  std::string out = cat(example.rule, ": ", example.caption, "\n\n");
  for (const std::vector<Panel>& panels : {picture.sources, picture.cells}) {
    std::vector<std::vector<std::string>> columns;
    for (const Panel& panel : panels) columns.push_back(text_lines(example, panel));
    append_beside(out, columns);
    out += "\n";
  }
  for (const SourcePart& part : example.parts) out += cat("  ", part.name.substr(0, 1), " ", part.name);
  return out + "\n";
}

}  // namespace mckpt::impl
