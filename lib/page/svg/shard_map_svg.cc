// A line of the drawing: name and shape, then the whole tensor, then a cell for each column. In a cell, down
// goes the first axis that is cut (or the number of the expert), to the right the second one:
//
//   q_proj.weight  [32, 16]   |##|   |##| |  | |  |
//                             |##|   |  | |##| |--|    a hole is red in every cell: nobody has its items
#include "page/svg/shard_map_svg.h"

#include <algorithm>
#include <cstdio>
#include <optional>

#include "core/base/text.h"
#include "core/items/shape.h"
#include "page/assets.h"
#include "page/data/checkpoint_picture.h"
#include "page/html/shell.h"
#include "page/picture_file.h"

namespace mckpt::impl {
namespace {

constexpr double kWidth = 1000, kMargin = 16, kNames = 440, kWhole = 22, kLine = 19, kCellHeight = 14;
constexpr std::size_t kMostLines = 150, kMostLetters = 62;

struct Place {
  double x = 0, y = 0, width = 1, height = 1;  // in parts of a cell
};

// Which axes of a row go down and to the right, and how far the numbers of its members go.
class Frame {
 public:
  explicit Frame(const ShardRow& row) : row_(row) {
    std::vector<std::size_t> cut;
    for (std::size_t a = 0; a < row.dims.size(); a++)
      if (std::ranges::any_of(row.boxes, [&](const ShardBox& b) { return b.sizes[a] != row.dims[a]; }))
        cut.push_back(a);
    const bool wide = row.stack && (cut.size() > 1 || std::ranges::any_of(row.boxes, [&](const ShardBox& b) {
                                      return b.count > 1 && b.sizes != row.dims;
                                    }));
    if (!cut.empty()) (wide ? right_ : down_) = cut[0];
    if (!row.stack && cut.size() > 1) right_ = cut[1];
    if (!row.stack) return;
    first_ = row.members.front();
    i64 last = row.members.back();
    for (const ShardFault& f : row.faults)
      if (f.kind == ShardFault::Kind::kAbsent)
        first_ = std::min(first_, f.member), last = std::max(last, f.member);
    span_ = last - first_ + 1;
  }

  Place of(const ShardBox& b) const { return place(b.member, b.count, b.offsets, b.sizes); }
  Place of(const ShardFault& f) const {
    if (f.kind != ShardFault::Kind::kAbsent) return place(f.member, 1, f.offsets, f.sizes);
    return {0, part(f.member - first_, span_), 1, part(1, span_)};
  }

 private:
  static double part(i64 n, i64 of) { return of > 0 ? static_cast<double>(n) / static_cast<double>(of) : 0; }

  Place place(i64 member, i64 count, std::span<const i64> offsets, std::span<const i64> sizes) const {
    Place p;
    if (right_)
      p.x = part(offsets[*right_], row_.dims[*right_]), p.width = part(sizes[*right_], row_.dims[*right_]);
    if (down_)
      p.y = part(offsets[*down_], row_.dims[*down_]), p.height = part(sizes[*down_], row_.dims[*down_]);
    if (!row_.stack) return p;
    const i64 number = row_.members[member] - first_;
    if (count > 1)
      return {p.x, part(number, span_), p.width,
              part(row_.members[member + count - 1] - row_.members[member] + 1, span_)};
    const double one = part(1, span_);
    return {p.x, part(number, span_) + p.y * one, p.width, p.height * one};
  }

  const ShardRow& row_;
  std::optional<std::size_t> down_, right_;
  i64 first_ = 0, span_ = 1;
};

std::string fixed(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value);
  return text;
}

std::string ranges_of(std::span<const NumberRange> ranges) {
  std::string out;
  for (std::size_t i = 0; i < std::min<std::size_t>(ranges.size(), 6); i++)
    out += cat(i ? ", " : "", ranges[i].first,
               ranges[i].first == ranges[i].last ? "" : cat("..", ranges[i].last));
  return ranges.size() > 6 ? out + " ..." : out;
}

std::string kind_of(const ShardRow& row) {
  if (row.members.empty()) return row.before;
  return row.stack ? cat(row.before, "{", ranges_of(number_ranges(row.members)), "}", row.after)
                   : cat(row.before, row.members[0], row.after);
}

// The front of long names is less telling than their end.
std::string fitted(const std::string& text, std::size_t most) {
  return text.size() <= most ? text : cat("...", text.substr(text.size() - most + 3));
}

class MapDrawing {
 public:
  explicit MapDrawing(const CheckpointPicture& p)
      : p_(p), map_(p.map), columns_(std::max<i64>(1, std::ssize(map_.columns))) {
    step_ = std::min(60.0, (kWidth - kMargin - cells_left()) / static_cast<double>(columns_));
  }

  std::string draw() {
    head();
    std::size_t left_out = 0;
    for (const ShardBlock& block : map_.blocks) {
      if (lines_ >= kMostLines && !block.faulty) {
        left_out += block.kinds.size();
        continue;
      }
      block_title(block);
      for (const std::vector<ShardVariant>& kind : block.kinds) lines(kind);
    }
    if (left_out > 0)
      text(kMargin, y_ += kLine,
           cat("and ", counted(static_cast<i64>(left_out), "line"), " more; the HTML page has them"), "note");
    legend();
    const std::string height = fixed(y_ + kMargin);
    return cat("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", fixed(kWidth), "\" height=\"", height,
               "\" viewBox=\"0 0 ", fixed(kWidth), " ", height, "\" role=\"img\">\n", picture_mark(),
               "<title>Shard map of ", html_text(p_.title), "</title>\n<style>\n",
               page_asset("shard_map.css"), "</style>\n",
               "<rect class=\"ground\" width=\"100%\" height=\"100%\"/>\n", out_, "</svg>\n");
  }

 private:
  static double cells_left() { return kMargin + kNames + kWhole + 14; }

  void text(double x, double y, std::string_view words, std::string_view kind) {
    out_ += cat("<text x=\"", fixed(x), "\" y=\"", fixed(y), "\" class=\"", kind, "\">", html_text(words),
                "</text>\n");
  }
  void rect(double x, double y, double width, double height, std::string_view kind) {
    out_ += cat("<rect x=\"", fixed(x), "\" y=\"", fixed(y), "\" width=\"", fixed(width), "\" height=\"",
                fixed(height), "\" class=\"", kind, "\"/>\n");
  }
  double cell_x(i64 column) const { return cells_left() + static_cast<double>(column) * step_; }
  double cell_width() const { return step_ - (step_ > 8 ? 3 : step_ > 3 ? 0.8 : 0); }

  void head() {
    text(kMargin, y_ = 26, fitted(p_.title, 100), "title");
    std::string about =
        cat(p_.planned ? "plan, " : "", p_.format, "  |  ", counted(p_.summary.all.tensors, "tensor"), "  ",
            human_bytes(p_.summary.all.bytes));
    about += cat("  |  ", counted(map_.holders, map_.by_rank ? "rank" : "file"),
                 map_.per_column > 1 ? cat(", ", map_.per_column, " in each column") : "");
    text(kMargin, y_ = 45, about, "note");
    if (map_.faulty_tensors > 0)
      text(kWidth - kMargin, 26,
           cat(counted(map_.faulty_tensors, "tensor"), map_.faulty_tensors == 1 ? " is" : " are",
               " not stored exactly once"),
           "right loud");
    y_ = 70;
    text(cells_left() - 14 - kWhole / 2, y_, "all", "soft middle");
    i64 every = 1;
    while (static_cast<double>(every) * step_ < 34) every *= 2;
    for (i64 c = 0; c < std::ssize(map_.columns); c += every)
      text(cell_x(c) + cell_width() / 2, y_,
           cat(map_.by_rank ? "r" : "f", map_.by_rank ? c * map_.per_column : c * map_.per_column + 1),
           "soft middle");
  }

  void block_title(const ShardBlock& block) {
    y_ += 6;
    std::string title = block.section.empty()
                            ? block.title
                            : cat(block.section, ".{", ranges_of(number_ranges(block.layers)), "}");
    if (block.count() > 1) title += cat("   x", block.count());
    text(kMargin, y_ += kLine, title, "block");
  }

  // A line for the layers that are sound, whose boxes are drawn over each other where they differ, and one
  // for each variant that is not.
  void lines(const std::vector<ShardVariant>& kind) {
    std::optional<ShardRow> sound;
    i64 ways = 0;
    for (const ShardVariant& v : kind) {
      const ShardRow& row = map_.rows[v.row];
      if (!row.faults.empty()) {
        line(row, kind.size() == 1 ? "" : cat("layer ", ranges_of(number_ranges(v.layers)), "  "));
        continue;
      }
      ways++;
      if (!sound)
        sound = row;
      else
        sound->boxes.insert(sound->boxes.end(), row.boxes.begin(), row.boxes.end());
    }
    if (sound) line(*sound, ways > 1 ? cat(ways, " ways  ") : "");
  }

  void line(const ShardRow& row, const std::string& which) {
    lines_++;
    y_ += kLine;
    const std::string shape = cat(which, dims_to_string(row.dims), " ", dtype_name(row.dtype));
    const std::size_t room = kMostLetters - std::min<std::size_t>(kMostLetters - 12, shape.size());
    text(kMargin + 10, y_, fitted(kind_of(row), room), row.faults.empty() ? "" : "loud");
    text(kMargin + kNames - 6, y_, shape, "soft right");
    const double top = y_ - 11;
    rect(kMargin + kNames, top, kWhole, kCellHeight, "cell");
    for (i64 c = 0; c < std::ssize(map_.columns); c++)
      rect(cell_x(c), top, cell_width(), kCellHeight, "cell");
    const Frame frame(row);
    for (const bool merged : {true, false})
      for (const ShardBox& b : row.boxes) {
        if (!merged && b.column < 0) continue;
        if (Shape(b.sizes).items() == 0 && !b.sizes.empty()) continue;
        filled(merged, b.column, frame.of(b), top,
               b.lost ? "hole" : cat(module_part_name(row.part), b.replica ? " copy" : ""));
      }
    for (const ShardFault& f : row.faults) {
      if (f.kind == ShardFault::Kind::kOverlap)
        for (i64 c : {f.first, f.second})
          filled(true, 0, frame.of(f), top, "twice"),
              c < 0 ? void() : filled(false, c, frame.of(f), top, "twice");
      if (f.kind != ShardFault::Kind::kHole && f.kind != ShardFault::Kind::kAbsent) continue;
      filled(true, 0, frame.of(f), top, "hole");
      for (i64 c = 0; c < std::ssize(map_.columns); c++) filled(false, c, frame.of(f), top, "hole");
    }
  }

  // A part of the cell of the column, or of the whole tensor's cell; never thinner than can be seen.
  void filled(bool merged, i64 column, const Place& p, double top, std::string_view kind) {
    const double left = merged ? kMargin + kNames : cell_x(column), width = merged ? kWhole : cell_width();
    const double high = std::max(p.height * kCellHeight, kind == "hole" || kind == "twice" ? 1.6 : 0.8);
    rect(left + p.x * width, top + std::min(p.y * kCellHeight, kCellHeight - high),
         std::max(p.width * width, 0.6), high, kind);
  }

  void legend() {
    y_ += kLine + 10;
    double x = kMargin;
    const std::pair<std::string_view, std::string_view> signs[] = {
        {"attention", "held, in the colour of the module"},
        {"cell", "not held"},
        {"attention copy", "a copy"},
        {"hole", "a hole: nobody has it"},
        {"twice", "stored twice"}};
    for (const auto& [kind, words] : signs) {
      rect(x, y_ - 10, 12, 12, kind);
      text(x + 18, y_, words, "note");
      x += 34 + 6.4 * static_cast<double>(words.size());
    }
  }

  const CheckpointPicture& p_;
  const ShardMap& map_;
  const i64 columns_;
  double step_ = 0, y_ = 0;
  std::size_t lines_ = 0;
  std::string out_;
};

}  // namespace

std::string shard_map_svg(const CheckpointPicture& picture) { return MapDrawing(picture).draw(); }

}  // namespace mckpt::impl
