// Draws a flat buffer: one line of letters, with the ranks' boundaries above and below it. There are three
// forms, by how much room there is:
//
//   shards of few items      a column is an item; as many shards in a line as fit
//   shards of many items     equally many columns a shard; a column shows the parameter with most of its items
//   more than 8 lines        one strip for the whole bucket, without boundaries, and "a column is about N items"
#include "tools/answers/layout/buffer_picture.h"

#include <algorithm>
#include <numeric>

#include "core/base/int.h"
#include "core/base/text.h"
#include "core/fsdp/flat_buffer.h"
#include "tools/render/output.h"

namespace mckpt::impl {
namespace {

constexpr i64 kFree = -1;
constexpr i64 kMostLines = 8;
constexpr i64 kLeastCell = 6;  // columns of a shard, so that its label finds room

// Which parameter is at a place of the buffer, asked in ascending order.
class Map {
 public:
  explicit Map(const FlatBuffer& b) : buffer_(b), by_offset_(b.parameters.size()) {
    std::iota(by_offset_.begin(), by_offset_.end(), 0);
    std::sort(by_offset_.begin(), by_offset_.end(),
              [&](std::size_t x, std::size_t y) { return b.parameters[x].offset < b.parameters[y].offset; });
  }

  // The parameter with most items in [begin, end); kFree when holes and padding have more than each of them.
  // pre: begin is not before the one of the call before.
  i64 at(i64 begin, i64 end) {
    while (next_ < by_offset_.size() && param(next_).end() <= begin) next_++;
    i64 best = kFree, most = 0, used = 0;
    for (std::size_t k = next_; k < by_offset_.size() && param(k).offset < end; k++) {
      i64 items = std::min(end, param(k).end()) - std::max(begin, param(k).offset);
      used += items;
      if (items > most) best = static_cast<i64>(by_offset_[k]), most = items;
    }
    return end - begin - used > most ? kFree : best;
  }

 private:
  const PackedParameter& param(std::size_t k) const { return buffer_.parameters[by_offset_[k]]; }

  const FlatBuffer& buffer_;
  std::vector<std::size_t> by_offset_;
  std::size_t next_ = 0;
};

// items * part / parts without leaving 63 bits. pre: part <= parts, both small.
i64 fraction(i64 items, i64 part, i64 parts) { return items / parts * part + items % parts * part / parts; }

// Columns [0, columns) of the items [begin, begin + items).
std::string drawn(Map& map, i64 begin, i64 items, i64 columns, bool unicode) {
  std::string out;
  for (i64 c = 0; c < columns; c++) {
    i64 from = begin + fraction(items, c, columns), to = begin + fraction(items, c + 1, columns);
    i64 p = map.at(from, std::max(to, from + 1));
    out += p == kFree ? (unicode ? "·" : ".") : std::string(1, parameter_letter(p));
  }
  return out;
}

// Labels at the left ends of their cells; one that would run into the label before is left out.
std::string labels(i64 first, i64 count, i64 cell, const std::function<std::string(i64)>& label) {
  std::string out;
  for (i64 i = 0; i < count; i++) {
    std::size_t column = static_cast<std::size_t>(i * cell);
    if (i > 0 && out.size() >= column) continue;
    out.append(column - out.size(), ' ');
    out += label(first + i);
  }
  return out;
}

}  // namespace

// Parameters 0 to 25 are a to z, 26 to 51 are A to Z; from 52 on the letters repeat.
char parameter_letter(i64 p) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  return kLetters[static_cast<std::size_t>(p) % kLetters.size()];
}

std::vector<std::string> buffer_picture(const FlatBuffer& b, const PictureStyle& style) {
  Map map(b);
  std::string bar = style.unicode ? "│" : "|";
  i64 width = std::clamp<i64>(style.columns - 1, 16, 96);
  i64 least = std::min<i64>(kLeastCell, b.shard_items);
  i64 per_line = std::min(b.shards, width / (least + 1));
  if (b.shard_items == 0 || ceil_div(b.shards, per_line) > kMostLines) {
    i64 columns = std::min(width - 1, b.bucket_items);
    std::vector<std::string> strip{cat(bar, drawn(map, 0, b.bucket_items, columns, style.unicode), bar)};
    if (columns < b.bucket_items)
      strip.push_back(cat(" a column is about ", with_commas(b.bucket_items / columns), " items"));
    return strip;
  }
  i64 cell = std::min(b.shard_items, width / per_line - 1);
  std::vector<std::string> lines;
  for (i64 first = 0; first < b.shards; first += per_line) {
    i64 count = std::min(per_line, b.shards - first);
    std::string line = bar;
    for (i64 s = first; s < first + count; s++)
      line += drawn(map, s * b.shard_items, b.shard_items, cell, style.unicode) + bar;
    lines.push_back(labels(first, count, cell + 1, [&](i64 s) { return cat(s * b.shard_items); }));
    lines.push_back(std::move(line));
    lines.push_back(cat(" ", labels(first, count, cell + 1, style.shard_label)));
  }
  return lines;
}

}  // namespace mckpt::impl
