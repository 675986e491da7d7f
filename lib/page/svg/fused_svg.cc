// One axis for all ranks. Items that the rule puts into a wrong part have that part's colour under stripes,
// lost ones an outline.
#include "page/svg/fused_svg.h"

#include <algorithm>
#include <cstdio>

#include "core/base/text.h"
#include "page/assets.h"
#include "page/data/fused_picture.h"
#include "page/html/shell.h"
#include "page/picture_file.h"

namespace mckpt::impl {
namespace {

constexpr double kWidth = 1200, kMargin = 16, kNames = 190, kNumbers = 370, kRow = 40, kBar = 15, kLow = 9;
constexpr double kAxis = kWidth - 2 * kMargin - kNames - kNumbers;
constexpr std::size_t kMostRanks = 48;
constexpr double kLeast = 0.03;  // of the axis, for a part

// The colours of the shard map, one for each part.
constexpr std::string_view kColours[] = {"attention", "experts", "mlp", "router", "norm", "embedding"};

std::string fixed(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value);
  return text;
}

// The end of a long name, which tells more than its beginning.
std::string shortened(const std::string& text, std::size_t most) {
  return text.size() <= most ? text : cat("...", text.substr(text.size() - most + 3));
}

class FusedDrawing {
 public:
  explicit FusedDrawing(const FusedPicture& picture)
      : p_(picture),
        axis_(picture.cut, std::min(kLeast, 1.0 / static_cast<double>(picture.cut.parts.size()))) {}

  std::string draw() {
    text(kMargin, y_ = 26, shortened(p_.title, 110), "title");
    text(kMargin, y_ = 45, shortened(p_.about, 160), "note");
    text(kMargin, y_ = 82, "parts", "");
    for (std::size_t i = 0; i < p_.cut.parts.size(); i++) draw_part(i);
    y_ += 14;
    for (const FusedRow& row : fused_rows(p_.cut, kMostRanks)) draw(row);
    legend();
    const std::string height = fixed(y_ + kMargin);
    return cat("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", fixed(kWidth), "\" height=\"", height,
               "\" viewBox=\"0 0 ", fixed(kWidth), " ", height, "\" role=\"img\">\n", picture_mark(),
               "<title>Parts of ", html_text(p_.title), "</title>\n<style>\n", page_asset("shard_map.css"),
               page_asset("fused.css"), "</style>\n", kStripes,
               "<rect class=\"ground\" width=\"100%\" height=\"100%\"/>\n", out_, "</svg>\n");
  }

 private:
  static constexpr std::string_view kStripes =
      "<defs><pattern id=\"wrong\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" "
      "patternTransform=\"rotate(45)\"><rect class=\"ground\" width=\"3\" height=\"6\"/></pattern></defs>\n";

  void text(double x, double y, std::string_view words, std::string_view kind) {
    out_ += cat("<text x=\"", fixed(x), "\" y=\"", fixed(y), "\" class=\"", kind, "\">", html_text(words),
                "</text>\n");
  }

  double x(i64 item) const { return kMargin + kNames + axis_.at(item) * kAxis; }

  void bar(ItemRange items, double y, double height, std::string_view kind, const std::string& title) {
    if (items.empty()) return;
    const double from = x(items.begin), width = std::max(x(items.end) - from, 0.8);
    out_ += cat("<rect x=\"", fixed(from), "\" y=\"", fixed(y), "\" width=\"", fixed(width), "\" height=\"",
                fixed(height), "\" class=\"", kind, "\"><title>", html_text(title), "</title></rect>\n");
  }

  static std::string_view colour(std::size_t part) { return kColours[part % std::size(kColours)]; }

  static std::string range_text(ItemRange r) {
    return cat("[", with_commas(r.begin), ", ", with_commas(r.end), ")");
  }

  // A part with its name, where there is room for it.
  void draw_part(std::size_t i) {
    const FusedPart& part = p_.cut.parts[i];
    const std::string label = part_label(part);
    const double from = x(part.items.begin), width = x(part.items.end) - from;
    bar(part.items, y_ - 13, kBar + 3, colour(i), cat(label, " ", range_text(part.items)));
    const bool fits = width > 6.8 * static_cast<double>(label.size()) + 4;
    text(from + width / 2, y_ - 20, fits ? label : label.substr(0, 1), "middle");
  }

  void draw(const FusedRow& row) {
    if (row.share < 0) {
      text(kMargin, y_ += kRow,
           cat("from rank ", row.first, " on: ", counted(row.ranks, "rank"),
               row.empty ? " with nothing of it" : " more"),
           "soft");
      return;
    }
    y_ += kRow;
    const FusedShare& share = p_.cut.shares[row.share];
    text(kMargin, y_, cat("rank ", share.rank), "");
    bar({0, p_.cut.items()}, y_ - 12, kBar, "cell", "");
    bar(share.items, y_ + 6, kLow, "lost", cat("lost of ", range_text(share.items)));
    for (std::size_t i = 0; i < p_.cut.parts.size(); i++) {
      const FusedPart& part = p_.cut.parts[i];
      const ItemRange right = part_of_share(part, share), taken = part_by_local_count(p_.cut, part, share);
      bar(right, y_ - 12, kBar, colour(i), cat(part_label(part), " ", range_text(right)));
      bar(taken, y_ + 6, kLow, "ground", "");
      bar(taken, y_ + 6, kLow, colour(i), cat("as ", part_label(part), ": ", range_text(taken)));
      // Before and behind the items that are of this part.
      for (const ItemRange r : {ItemRange{taken.begin, std::min(taken.end, part.items.begin)},
                                ItemRange{std::max(taken.begin, part.items.end), taken.end}})
        bar(r, y_ + 6, kLow, "over", cat("of another part, as ", part_label(part), ": ", range_text(r)));
    }
    const double numbers = kWidth - kMargin - kNumbers + 12;
    text(kMargin, y_ + 14, range_text(share.items), "soft");
    std::string right = right_text(p_.cut, share);
    constexpr std::size_t kRoom = 54;
    if (right.size() > kRoom) right = cat(right.substr(0, kRoom - 3), "...");
    text(numbers, y_, right, "");
    text(numbers, y_ + 14, loss_text(p_.cut, share), "soft");
  }

  void legend() {
    text(
        kMargin, y_ += kRow,
        "Above, the items of each rank. Below, the parts into which they go if parts are cut by the rank's own "
        "number of items, which is all that a plain tensor of an optimizer says.",
        "note");
    text(
        kMargin, y_ += 18,
        cat("Right: into the part that they are of; wrong (striped): into another one; lost (dashed): into none. All "
            "ranks, ",
            total_loss_text(p_.cut)),
        "note");
  }

  const FusedPicture& p_;
  FusedAxis axis_;
  double y_ = 0;
  std::string out_;
};

}  // namespace

std::string fused_svg(const FusedPicture& picture) { return FusedDrawing(picture).draw(); }

}  // namespace mckpt::impl
