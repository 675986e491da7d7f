// The picture as text: a column of letters for the items of each rank, and below it the letters that the rule
// of local counts gives them.
//
//   parts   WWWWWWWWWWWWWWWWWWWWVVVVVVVVVVVVVVVVVVVV   W [0, 20)  V [20, 40)
//   rank 0  WWWWWWWWWWWWWWWW                           W 16
//   by countWWWWWWWWVVVVVVVV                           8 right, 8 wrong, 0 lost
//   rank 1                  WWWWVVVVVVVVVVVV           W 4, V 12
//   by count                ................           0 right, 0 wrong, 16 lost
#include <algorithm>
#include <cctype>

#include "core/base/text.h"
#include "page/data/fused_picture.h"

namespace mckpt::impl {
namespace {

constexpr std::size_t kMostRanks = 16;

class FusedLines {
 public:
  FusedLines(const FusedPicture& picture, i64 width)
      : p_(picture),
        columns_(std::clamp<i64>(width - kNames - kNumbers, 16, std::max<i64>(16, picture.cut.items()))),
        axis_(picture.cut, std::min(2.0 / static_cast<double>(columns_),
                                    1.0 / static_cast<double>(picture.cut.parts.size()))) {
    for (std::size_t i = 0; i < p_.cut.parts.size(); i++) letters_ += letter(i);
  }

  std::string draw() {
    out_ = cat(p_.title, "\n", p_.about, "\n\n");
    std::string axis(static_cast<std::size_t>(columns_), ' '), ranges;
    for (std::size_t i = 0; i < p_.cut.parts.size(); i++) {
      const FusedPart& part = p_.cut.parts[i];
      fill(axis, part.items, letters_[i]);
      ranges += cat(i == 0 ? "" : "  ",
                    part_label(part) == std::string(1, letters_[i]) ? "" : cat(letters_[i], " is "),
                    part_label(part), " [", part.items.begin, ", ", part.items.end, ")");
    }
    out_ += cat(padded("parts", kNames), axis, "\n", padded("", kNames), ranges, "\n");
    for (const FusedRow& row : fused_rows(p_.cut, kMostRanks)) draw(row);
    out_ += cat(
        "\nEach rank's items, and below them the parts into which they go if parts are cut by the rank's own number\n"
        "of items, which is all that a plain tensor of an optimizer says. Right: into the part that they are of;\n"
        "wrong: into another one; lost ('.'): into none. All ranks, ",
        total_loss_text(p_.cut), "\n");
    return std::move(out_);
  }

 private:
  static constexpr i64 kNames = 12, kNumbers = 44;

  // A letter for each part: of its name, and different from the earlier ones.
  char letter(std::size_t part) const {
    for (char c : part_label(p_.cut.parts[part]))
      if (std::isalnum(static_cast<unsigned char>(c)) && letters_.find(c) == letters_.npos) return c;
    return static_cast<char>('1' + part);
  }

  static std::string padded(std::string text, i64 width) {
    text.resize(std::max(text.size(), static_cast<std::size_t>(width)), ' ');
    return text;
  }

  // At least one column for items that are not nothing.
  void fill(std::string& line, ItemRange items, char with) const {
    if (items.empty()) return;
    auto column = [&](i64 item) {
      return static_cast<i64>(axis_.at(item) * static_cast<double>(columns_) + 0.5);
    };
    const i64 begin = std::min(column(items.begin), columns_ - 1);
    const i64 end = std::max(column(items.end), begin + 1);
    std::fill(line.begin() + begin, line.begin() + end, with);
  }

  void draw(const FusedRow& row) {
    if (row.share < 0) {
      out_ += cat("ranks from ", row.first, " on: ", counted(row.ranks, "rank"),
                  row.empty ? " with nothing of it\n" : " more\n");
      return;
    }
    const FusedShare& share = p_.cut.shares[row.share];
    std::string right(static_cast<std::size_t>(columns_), ' '), wrong = right;
    fill(wrong, share.items, '.');
    for (std::size_t i = 0; i < p_.cut.parts.size(); i++) {
      fill(right, part_of_share(p_.cut.parts[i], share), letters_[i]);
      fill(wrong, part_by_local_count(p_.cut, p_.cut.parts[i], share), letters_[i]);
    }
    out_ += cat(padded(cat("rank ", share.rank), kNames), right, "  ", right_text(p_.cut, share), "\n",
                padded("  by count", kNames), wrong, "  ", loss_text(p_.cut, share), "\n");
  }

  const FusedPicture& p_;
  i64 columns_;
  FusedAxis axis_;
  std::string letters_, out_;
};

}  // namespace

std::string fused_text(const FusedPicture& picture, i64 width) { return FusedLines(picture, width).draw(); }

}  // namespace mckpt::impl
