// Assigns ranks or files to columns, and joins boxes that continue each other.
#include "page/data/map_boxes.h"

#include <algorithm>
#include <tuple>

#include "core/base/text.h"
#include "core/items/shape.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

// Bytes of some items, also where they do not fill whole bytes.
i64 bytes_of(DType dtype, std::span<const i64> sizes) {
  return dtype == DType::kCount ? 0 : (Shape(sizes).items() * dtype_info(dtype).bits + 7) / 8;
}

auto alike(const ShardBox& b) { return std::tie(b.column, b.lost, b.replica, b.offsets, b.sizes); }

// Whether `next` continues `box` along the axis, and is like it otherwise.
bool continues(const ShardBox& box, const ShardBox& next, std::size_t axis) {
  if (std::tie(box.column, box.lost, box.replica, box.member, box.count) !=
      std::tie(next.column, next.lost, next.replica, next.member, next.count))
    return false;
  for (std::size_t i = 0; i < box.sizes.size(); i++)
    if (i != axis && (box.offsets[i] != next.offsets[i] || box.sizes[i] != next.sizes[i])) return false;
  return box.offsets[axis] + box.sizes[axis] == next.offsets[axis];
}

void join_along(std::vector<ShardBox>& boxes, std::size_t axis) {
  std::ranges::stable_sort(boxes, [axis](const ShardBox& a, const ShardBox& b) {
    auto key = [axis](const ShardBox& x) {
      std::vector<i64> others = x.offsets;
      others[axis] = 0;
      return std::tuple(x.column, x.lost, x.replica, x.member, x.count, std::move(others), x.offsets[axis]);
    };
    return key(a) < key(b);
  });
  std::vector<ShardBox> out;
  for (ShardBox& b : boxes) {
    if (!out.empty() && continues(out.back(), b, axis))
      out.back().sizes[axis] += b.sizes[axis];
    else
      out.push_back(std::move(b));
  }
  boxes = std::move(out);
}

void join_members(std::vector<ShardBox>& boxes) {
  std::ranges::sort(boxes, [](const ShardBox& a, const ShardBox& b) {
    return std::tuple(alike(a), a.member) < std::tuple(alike(b), b.member);
  });
  std::vector<ShardBox> out;
  for (ShardBox& b : boxes) {
    if (!out.empty() && alike(out.back()) == alike(b) && out.back().member + out.back().count == b.member)
      out.back().count += b.count;
    else
      out.push_back(std::move(b));
  }
  boxes = std::move(out);
}

}  // namespace

ShardColumns::ShardColumns(const Store& store, i64 most) {
  by_rank = store.ranks() > 1;
  holders = by_rank ? store.ranks() : std::ssize(store.files());
  per_column = std::max<i64>(1, ceil_div(holders, most));
}

i64 ShardColumns::count() const { return ceil_div(holders, per_column); }

i64 ShardColumns::of(const Chunk& c) const {
  const i64 holder = by_rank ? c.rank : c.file;
  return holder < 0 || holder >= holders ? -1 : holder / per_column;
}

std::vector<ShardColumn> ShardColumns::titles(const Store& store) const {
  std::vector<ShardColumn> out;
  for (i64 first = 0; first < holders; first += per_column) {
    const i64 last = std::min(first + per_column, holders) - 1;
    if (by_rank)
      out.push_back({.label = first == last ? cat("rank ", first) : cat("ranks ", first, "..", last)});
    else if (first == last)
      out.push_back({.label = std::string(file_label(store, static_cast<i32>(first))),
                     .lost = store.files()[first].bytes < 0});
    else
      out.push_back({.label = cat("files ", first + 1, "..", last + 1, " of ", holders)});
  }
  return out;
}

i64 ShardColumns::add_boxes(const Store& store, i64 tensor, i64 member, std::vector<ShardBox>& boxes,
                            std::vector<ShardColumn>& columns) const {
  for (i64 i = 0; i < store.chunk_count(tensor); i++) {
    const Chunk c = store.chunk(tensor, i);
    ShardBox box{.column = of(c),
                 .member = member,
                 .offsets{c.offsets.begin(), c.offsets.end()},
                 .sizes{c.sizes.begin(), c.sizes.end()}};
    box.replica = c.replica, box.lost = file_is_lost(store, c);
    if (box.column >= 0) {
      columns[box.column].bytes += bytes_of(store.dtype(tensor), c.sizes);
      columns[box.column].lost |= box.lost;
    }
    boxes.push_back(std::move(box));
  }
  return bytes_of(store.dtype(tensor), store.dims(tensor));
}

bool file_is_lost(const Store& store, const Chunk& chunk) {
  return chunk.file >= 0 && chunk.file < std::ssize(store.files()) && store.files()[chunk.file].bytes < 0;
}

void merge_boxes(std::vector<ShardBox>& boxes, bool join) {
  if (join && !boxes.empty()) {
    for (std::size_t axis = 0; axis < boxes[0].sizes.size(); axis++) join_along(boxes, axis);
  }
  join_members(boxes);
}

}  // namespace mckpt::impl
