// Draws a rule as an SVG image: the panels of the sources at the left, the panels of the cells at the right,
// a legend below. One square is an item; the colour is its part of the source (queries, gate, ...), and the
// strength of the colour is the cell that holds the item. Sizes are in pixels.
#include <algorithm>
#include <array>

#include "core/base/text.h"
#include "mappings/picture/layout.h"
#include "mappings/picture/picture.h"

namespace mckpt::impl {
namespace {

// Sizes of squares, gaps and texts.
constexpr i64 kSquareWidth = 30, kSquareHeight = 17, kGap = 9, kPanelGap = 26, kMargin = 14;
constexpr i64 kHeaderHeight = 34, kCharWidth = 7;
constexpr i64 kPanelTop = kMargin + 26;

struct Colour {
  i64 red, green, blue;
};

// Colours that colour-blind people can tell apart.
constexpr std::array<Colour, 6> kColours = {
    {{68, 119, 170}, {238, 102, 119}, {34, 136, 51}, {204, 187, 68}, {102, 204, 238}, {170, 51, 119}}};

// "#4477aa".
std::string hex(const Colour& c) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out = "#";
  for (i64 v : {c.red, c.green, c.blue}) out += cat(kDigits[v / 16], kDigits[v % 16]);
  return out;
}

// The part gives the colour, the cell its strength.
std::string fill_of(const Square& square, i64 cells) {
  if (square.part < 0) return "#ffffff";
  i64 percent = square.cell == kEveryCell || cells == 1 ? 50 : 30 + 50 * square.cell / (cells - 1);
  Colour c = kColours[static_cast<std::size_t>(square.part) % kColours.size()];
  auto mixed = [&](i64 v) { return 255 - (255 - v) * percent / 100; };
  return hex({mixed(c.red), mixed(c.green), mixed(c.blue)});
}

// The text with the characters that XML needs escaped.
std::string xml(std::string_view text) {
  std::string out;
  for (char c : text) out += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : std::string(1, c);
  return out;
}

// Elements of SVG: a text, and a rectangle.
std::string text_at(i64 x, i64 y, std::string_view attributes, std::string_view text) {
  return cat("<text x=\"", x, "\" y=\"", y, "\"", attributes, ">", xml(text), "</text>\n");
}

std::string box(i64 x, i64 y, i64 width, i64 height, std::string_view fill, std::string_view stroke) {
  return cat("<rect x=\"", x, "\" y=\"", y, "\" width=\"", width, "\" height=\"", height, "\" fill=\"", fill,
             "\" stroke=\"", stroke, "\"/>\n");
}

// Estimated: the font has characters of one width.
i64 text_width(std::string_view text) { return static_cast<i64>(text.size()) * kCharWidth; }

i64 squares_width(const Panel& panel) { return panel.columns * kSquareWidth; }

// The widest of squares with labels, title and shape.
i64 width_of(const Panel& panel) {
  i64 labels = 0;
  for (const RowLabel& label : panel.labels) labels = std::max(labels, text_width(label.text) + 8);
  return std::max({squares_width(panel) + labels, text_width(panel.title), text_width(panel.shape)});
}

// Rows of different experts have a gap between them.
i64 row_top(const Panel& panel, i64 row) {
  i64 gaps = panel.rows == 0 ? 0 : row / panel.group_rows;
  return row * kSquareHeight + gaps * kGap;
}

i64 height_of(const Panel& panel) {
  return kHeaderHeight + (panel.rows == 0 ? 0 : row_top(panel, panel.rows - 1) + kSquareHeight);
}

// Title, shape, squares, and the labels beside their rows.
std::string draw_panel(const RuleExample& example, const Panel& panel, i64 left, i64 top) {
  std::string out = text_at(left, top + 11, " class=\"name\"", panel.title);
  out += text_at(left, top + 25, "", panel.shape);
  top += kHeaderHeight;
  for (i64 row = 0; row < panel.rows; row++)
    for (i64 column = 0; column < panel.columns; column++) {
      const Square& square = panel.squares[row * panel.columns + column];
      i64 x = left + column * kSquareWidth, y = top + row_top(panel, row);
      out += box(x, y, kSquareWidth, kSquareHeight, fill_of(square, example.cells),
                 square.part < 0 ? "#bbbbbb" : "#ffffff");
      out += text_at(x + kSquareWidth / 2, y + 12, " class=\"item\"", mark_of(example, square));
    }
  for (const RowLabel& label : panel.labels) {
    if (label.rows == 0) continue;
    i64 x = left + squares_width(panel) + 3, y = top + row_top(panel, label.first_row);
    out += box(x, y + 1, 1, label.rows * kSquareHeight - 2, "#555555", "none");
    out += text_at(x + 4, y + 12, "", label.text);
  }
  return out;
}

// Draws panels side by side and moves `left` past them.
std::string draw_row(const RuleExample& example, const std::vector<Panel>& panels, i64& left, i64& height) {
  std::string out;
  for (const Panel& panel : panels) {
    out += draw_panel(example, panel, left, kPanelTop);
    height = std::max(height, height_of(panel));
    left += width_of(panel) + kPanelGap;
  }
  return out;
}

// The colours, and the shades if cells differ. `right`: how far the drawing reaches.
std::string draw_legend(const RuleExample& example, bool shaded, i64 top, i64& right) {
  std::string out;
  i64 x = kMargin;
  for (std::size_t part = 0; part < example.parts.size(); part++) {
    out += box(x, top, 12, 12, fill_of({static_cast<i32>(part), 0, kEveryCell}, 1), "none");
    out += text_at(x + 17, top + 10, "", example.parts[part].name);
    x += 17 + text_width(example.parts[part].name) + 16;
  }
  if (shaded) {
    constexpr std::string_view kShades = "a stronger colour is a later cell";
    out += text_at(x, top + 10, "", kShades);
    x += text_width(kShades) + 16;
  }
  right = std::max(right, x - 16);
  return out;
}

}  // namespace

// The panels are drawn first, because the size of the image follows from them.
std::string draw_svg(const RuleExample& example) {
  Picture picture = lay_out(example);
  std::string title = cat(example.rule, ": ", example.caption);
  i64 left = kMargin, height = 0;
  std::string body = text_at(kMargin, kMargin + 9, "", title);
  body += draw_row(example, picture.sources, left, height);
  i64 divide = left;
  left += kPanelGap;
  body += draw_row(example, picture.cells, left, height);
  body += box(divide, kPanelTop, 1, height, "#999999", "none");
  i64 right = std::max(left - kPanelGap, kMargin + text_width(title));
  i64 legend = kPanelTop + height + kMargin;
  bool shaded = !picture.sources.empty() && picture.sources[0].squares[0].cell != kEveryCell;
  body += draw_legend(example, shaded, legend, right);
  i64 width = right + kMargin, bottom = legend + kMargin + 12;
  return cat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", width, "\" height=\"", bottom,
      "\" viewBox=\"0 0 ", width, " ", bottom, "\">\n",
      "<style>text{font:11px ui-monospace,Menlo,Consolas,monospace;fill:#222}.name{font-weight:bold}.item{font-size:10px;text-anchor:middle}</style>\n",
      "<title>", xml(title), "</title>\n", box(0, 0, width, bottom, "#ffffff", "none"), body, "</svg>\n");
}

}  // namespace mckpt::impl
