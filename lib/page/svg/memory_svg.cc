// All bars have one scale: the widest is the rank that takes most, with what it gathers.
#include "page/svg/memory_svg.h"

#include <algorithm>
#include <cstdio>
#include <numeric>

#include "core/base/text.h"
#include "page/assets.h"
#include "page/data/memory_picture.h"
#include "page/html/shell.h"
#include "page/picture_file.h"

namespace mckpt::impl {
namespace {

constexpr double kWidth = 1000, kMargin = 16, kNames = 190, kSums = 210, kLine = 30, kBar = 20;

// Each part with the class of its colour, which is one of the shard map's.
struct PartStyle {
  std::string_view name, kind;
};
constexpr PartStyle kStyles[MemoryPicture::kParts] = {
    {"weights", "attention"},           {"main weights", "experts"}, {"gradients", "mlp"},
    {"moments", "optimizer"},           {"buffers", "router"},       {"gathered weights", "attention copy"},
    {"unreduced gradients", "mlp copy"}};

std::string fixed(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value);
  return text;
}

i64 sum(const MemoryPicture::Row& row, int first, int end) {
  return std::accumulate(row.bytes + first, row.bytes + end, i64{0});
}

class MemoryDrawing {
 public:
  explicit MemoryDrawing(const MemoryPicture& picture) : p_(picture) {
    for (const MemoryPicture::Row& row : p_.rows) most_ = std::max(most_, sum(row, 0, MemoryPicture::kParts));
  }

  std::string draw() {
    text(kMargin, y_ = 26, p_.title, "title");
    text(kMargin, y_ = 45, p_.about, "note");
    y_ += 8;
    for (const MemoryPicture::Row& row : p_.rows) draw(row);
    if (!p_.warning.empty()) text(kMargin, y_ += kLine, p_.warning, "loud");
    legend();
    const std::string height = fixed(y_ + kMargin);
    return cat("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", fixed(kWidth), "\" height=\"", height,
               "\" viewBox=\"0 0 ", fixed(kWidth), " ", height, "\" role=\"img\">\n", picture_mark(),
               "<title>Memory of a rank of ", html_text(p_.title), "</title>\n<style>\n",
               page_asset("shard_map.css"), "</style>\n",
               "<rect class=\"ground\" width=\"100%\" height=\"100%\"/>\n", out_, "</svg>\n");
  }

 private:
  void text(double x, double y, std::string_view words, std::string_view kind) {
    out_ += cat("<text x=\"", fixed(x), "\" y=\"", fixed(y), "\" class=\"", kind, "\">", html_text(words),
                "</text>\n");
  }

  // A bar with its bytes as a title, which a browser shows.
  void draw(const MemoryPicture::Row& row) {
    y_ += kLine;
    text(kMargin, y_, row.name, "");
    if (!row.refused.empty()) return text(kMargin + kNames, y_, row.refused, "soft");
    double x = kMargin + kNames;
    const double scale = (kWidth - kMargin - kNames - kSums) / static_cast<double>(std::max<i64>(1, most_));
    for (int part = 0; part < MemoryPicture::kParts; part++) {
      if (row.bytes[part] == 0) continue;
      const double width = static_cast<double>(row.bytes[part]) * scale;
      out_ +=
          cat("<rect x=\"", fixed(x), "\" y=\"", fixed(y_ - 14), "\" width=\"", fixed(std::max(width, 0.6)),
              "\" height=\"", fixed(kBar), "\" class=\"", kStyles[part].kind, "\"><title>",
              kStyles[part].name, ": ", with_commas(row.bytes[part]), " B</title></rect>\n");
      x += width;
    }
    const i64 beside = sum(row, MemoryPicture::kGathered, MemoryPicture::kParts);
    text(kWidth - kSums + 8, y_,
         cat(human_bytes(sum(row, 0, MemoryPicture::kGathered)),
             beside > 0 ? cat(" + ", human_bytes(beside)) : ""),
         "");
  }

  void legend() {
    y_ += kLine + 4;
    double x = kMargin;
    for (const PartStyle& part : kStyles) {
      out_ += cat("<rect x=\"", fixed(x), "\" y=\"", fixed(y_ - 10),
                  "\" width=\"12.0\" height=\"12.0\" class=\"", part.kind, "\"/>\n");
      text(x + 18, y_, part.name, "note");
      x += 40 + 6.4 * static_cast<double>(part.name.size());
    }
  }

  const MemoryPicture& p_;
  i64 most_ = 0;
  double y_ = 0;
  std::string out_;
};

}  // namespace

std::string memory_svg(const MemoryPicture& picture) { return MemoryDrawing(picture).draw(); }

}  // namespace mckpt::impl
