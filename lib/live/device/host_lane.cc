// The lane of the process's own memory: each piece of work is done when it is given. Copies with a cast are
// done row by row; rows of fewer than 64 items are first packed into a block of 2,048 items, because a cast
// of a few items at a time is slow:
//
//   strided rows of 3 items  --pack-->  [2048 items]  --cast-->  [2048 items]  --unpack-->  strided rows
#include <algorithm>

#include "core/items/apply_move.h"
#include "live/device/device.h"

namespace mckpt::impl {
namespace {

void move_items(const u8* from, u8* to, i64 length, MoveLoop inner, MoveLoop outer, i64 item) {
  Move m;
  m.length = length, m.inner = inner, m.outer = outer;
  apply_move(m, item, {from, 0}, {to, 0});
}

// A cast of every row by itself.
void convert_rows(const ItemCopy& c, i64 from_item, i64 to_item) {
  for (i64 o = 0; o < c.outer.count; o++)
    for (i64 i = 0; i < c.inner.count; i++)
      cast_items(c.cast, c.from + (o * c.outer.from_stride + i * c.inner.from_stride) * from_item,
                 c.to + (o * c.outer.to_stride + i * c.inner.to_stride) * to_item, c.length);
}

// A cast of short rows: as many rows as fit into a block are packed, converted together, and unpacked.
void convert_short_rows(const ItemCopy& c, i64 from_item, i64 to_item) {
  constexpr i64 kBlock = 2048;
  u8 packed[kBlock * 8], converted[kBlock * 8];
  MoveLoop longer = c.inner, other = c.outer;
  if (longer.count < other.count) std::swap(longer, other);
  i64 most_rows = kBlock / c.length;
  for (i64 o = 0; o < other.count; o++)
    for (i64 begin = 0, rows; begin < longer.count; begin += rows) {
      rows = std::min(most_rows, longer.count - begin);
      const u8* from = c.from + (o * other.from_stride + begin * longer.from_stride) * from_item;
      u8* to = c.to + (o * other.to_stride + begin * longer.to_stride) * to_item;
      move_items(from, packed, c.length, {longer.from_stride, c.length, rows}, {}, from_item);
      cast_items(c.cast, packed, converted, rows * c.length);
      move_items(converted, to, c.length, {c.length, longer.to_stride, rows}, {}, to_item);
    }
}

void copy_items(const ItemCopy& c) {
  constexpr i64 kShort = 64;
  i64 from_item = dtype_bytes(c.cast.from, 1), to_item = dtype_bytes(c.cast.to, 1);
  if (c.cast.identity())
    move_items(c.from, c.to, c.length, c.inner, c.outer, from_item);
  else if (c.length > 0 && c.length < kShort)
    convert_short_rows(c, from_item, to_item);
  else
    convert_rows(c, from_item, to_item);
}

class HostLane final : public Lane {
 public:
  void upload(std::span<const u8> from, u8* to) override { std::ranges::copy(from, to); }
  void download(const u8* from, std::span<u8> to) override { std::copy_n(from, to.size(), to.begin()); }
  void copy(const u8* from, u8* to, i64 bytes) override { std::copy_n(from, bytes, to); }
  void zero(u8* at, i64 bytes) override { std::fill_n(at, bytes, u8{0}); }
  void scatter(std::span<const ItemCopy> copies) override { std::ranges::for_each(copies, copy_items); }
  void follow(Lane&) override {}
  void wait() override {}
  bool done() override { return true; }
};

}  // namespace

std::unique_ptr<Lane> HostDevice::lane() { return std::make_unique<HostLane>(); }

}  // namespace mckpt::impl
