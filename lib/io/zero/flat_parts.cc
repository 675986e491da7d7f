// The arithmetic of parts: ranges of a vector that intersect the parts, found by bisection.
#include "io/zero/flat_parts.h"

#include <algorithm>

namespace mckpt::impl {

void FlatParts::add(i64 part, i64 begin, i64 items) {
  if (items > 0) parts_.push_back({part, begin, items});
}

void FlatParts::cut(i64 begin, ItemRange items, std::vector<ZeroStretch>& out) const {
  const i64 end = begin + items.items();
  auto part = std::ranges::upper_bound(parts_, begin, {}, &Part::begin);
  if (part != parts_.begin()) --part;
  for (; part != parts_.end() && part->begin < end; ++part) {
    const ItemRange here = intersection({begin, end}, {part->begin, part->begin + part->items});
    if (here.empty()) continue;
    const i64 first = items.begin + here.begin - begin;
    out.push_back({part->part, here.begin - part->begin, {first, first + here.items()}});
  }
}

}  // namespace mckpt::impl
