// Segments are ranges of items, each known by the item behind its last one. The most layers that a segment
// needs are found first, by halving; then each segment takes the number of layers nearest to its share of
// those that are left, as far as the segments behind it can take the rest.
#include "core/hybrid/pipes.h"

#include <algorithm>
#include <vector>

#include "core/base/text.h"

namespace mckpt::impl {
namespace {

// The items behind the segments; the last one is the number of items.
using Ends = std::vector<i64>;

std::string with_ends(const LayerPattern& pattern, const Ends& ends, bool groups = true) {
  std::string text;
  i64 item = 0;
  for (std::size_t s = 0; s < ends.size(); s++) {
    if (s > 0) text += '|';
    for (; item < ends[s]; item++) {
      const PatternItem& i = pattern.items[item];
      text += i.is_group && groups ? cat("[", pattern.symbols(i), "]") : std::string(pattern.symbols(i));
    }
  }
  return text + pattern.text.substr(static_cast<std::size_t>(pattern.main_bytes));
}

LayerPattern cut_at(const LayerPattern& pattern, const Ends& ends) {
  return parse_pattern(with_ends(pattern, ends), pattern.dialect);
}

Ends ends_of(const LayerPattern& pattern) {
  Ends out;
  for (const PatternSegment& s : pattern.segments) out.push_back(s.first_item + s.item_count);
  return out;
}

// Items [begin, end) of a pattern, cut into segments.
class Cutter {
 public:
  Cutter(const LayerPattern& pattern, i64 begin, i64 end)
      : items_(pattern.items.data() + begin, pattern.items.data() + end), begin_(begin) {}

  // pre: 1 <= segments <= items.
  void cut(i64 segments, Ends& out) const {
    const i64 most = most_layers(segments);
    const std::vector<i64> needed = segments_needed(most);
    for (i64 s = 0, at = 0; s < segments; s++) {
      const i64 left = segments - 1 - s;
      at = left == 0 ? size() : end_of_segment(at, left, most, needed);
      out.push_back(begin_ + at);
    }
  }

 private:
  i64 size() const { return std::ssize(items_); }
  i64 layers(i64 from, i64 to) const { return items_[to - 1].physical_end() - items_[from].physical_first; }

  // The number of segments of at most so many layers that the items from each one on need.
  std::vector<i64> segments_needed(i64 most) const {
    std::vector<i64> needed(items_.size() + 1);
    i64 end = size();
    for (i64 i = size() - 1; i >= 0; i--) {
      while (end > i + 1 && layers(i, end) > most) end--;
      needed[i] = 1 + needed[end];
    }
    return needed;
  }

  i64 most_layers(i64 segments) const {
    i64 low = 1, high = layers(0, size());
    for (const PatternItem& item : items_) low = std::max(low, item.physical_count);
    while (low < high)
      if (const i64 middle = low + (high - low) / 2; segments_needed(middle)[0] <= segments)
        high = middle;
      else
        low = middle + 1;
    return low;
  }

  // `left`: the segments behind this one.
  i64 end_of_segment(i64 at, i64 left, i64 most, const std::vector<i64>& needed) const {
    const i64 all = layers(at, size());
    // Both sides are multiplied by the number of segments, so that fractions of layers are exact.
    auto distance = [&](i64 end) {
      const i64 over = layers(at, end) * (left + 1) - all;
      return over < 0 ? -over : over;
    };
    i64 best = -1;
    for (i64 end = at + 1; end <= size() - left && layers(at, end) <= most; end++)
      if (needed[end] <= left && (best < 0 || distance(end) < distance(best))) best = end;
    return best;
  }

  std::vector<PatternItem> items_;
  i64 begin_;
};

// Every so manieth end; nothing if a segment would have no items.
std::optional<Ends> joined(const LayerPattern& pattern, i64 segments) {
  const Ends ends = ends_of(pattern);
  const i64 together = std::ssize(ends) / segments;
  Ends out;
  for (i64 s = together - 1; s < std::ssize(ends); s += together) {
    if (ends[s] == (out.empty() ? 0 : out.back())) return std::nullopt;
    out.push_back(ends[s]);
  }
  return out;
}

// Each segment in equally many; nothing if one has too few items.
std::optional<Ends> divided(const LayerPattern& pattern, i64 segments) {
  const i64 parts = segments / std::ssize(pattern.segments);
  Ends out;
  for (const PatternSegment& s : pattern.segments) {
    if (s.item_count < parts) return std::nullopt;
    Cutter(pattern, s.first_item, s.first_item + s.item_count).cut(parts, out);
  }
  return out;
}

}  // namespace

LayerPattern without_pipes(const LayerPattern& pattern) {
  return cut_at(pattern, {pattern.logical_layers()});
}

LayerPattern without_groups(const LayerPattern& pattern) {
  return parse_pattern(with_ends(pattern, ends_of(pattern), false), pattern.dialect);
}

bool same_but_pipes(const LayerPattern& a, const LayerPattern& b) {
  return without_pipes(a).text == without_pipes(b).text;
}

std::optional<LayerPattern> with_segments(const LayerPattern& pattern, i64 segments) {
  const i64 now = std::ssize(pattern.segments);
  if (segments == now) return pattern;
  if (segments == 1) return without_pipes(pattern);
  if (segments > pattern.logical_layers()) return std::nullopt;
  std::optional<Ends> ends;
  if (now % segments == 0) ends = joined(pattern, segments);
  if (segments % now == 0) ends = divided(pattern, segments);
  if (!ends) Cutter(pattern, 0, pattern.logical_layers()).cut(segments, ends.emplace());
  return cut_at(pattern, *ends);
}

}  // namespace mckpt::impl
