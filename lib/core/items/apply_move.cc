// Copies the items of a move with the widest loop that fits:
//
//   length 4, one or two loops    whole rows of 4 items: one memcpy a row, of a size that the compiler knows
//                                 if it is 1, 2, 4, ... or 64 bytes
//   length 1, one loop            single items, in the same loops
//   length 1, two loops           a transpose in tiles (transpose.h), unless both sides go in the same order
#include "core/items/apply_move.h"

#include <cstring>
#include <utility>

#include "core/items/move.h"
#include "core/items/transpose.h"

namespace mckpt::impl {
namespace {

// Rows of a length known to the compiler, or of any length (kBytes 0).
template <i64 kBytes>
void copy_rows(const Move& m, i64 item, const u8* from, u8* to) {
  i64 bytes = kBytes ? kBytes : m.length * item;
  for (i64 o = 0; o < m.outer.count; o++) {
    const u8* f = from + o * m.outer.from_stride * item;
    u8* t = to + o * m.outer.to_stride * item;
    for (i64 i = 0; i < m.inner.count; i++) {
      std::memcpy(t, f, static_cast<std::size_t>(kBytes ? kBytes : bytes));
      f += m.inner.from_stride * item;
      t += m.inner.to_stride * item;
    }
  }
}

void zero_rows(const Move& m, i64 item, u8* to) {
  for (i64 o = 0; o < m.outer.count; o++)
    for (i64 i = 0; i < m.inner.count; i++)
      std::memset(to + (o * m.outer.to_stride + i * m.inner.to_stride) * item, 0,
                  static_cast<std::size_t>(m.length * item));
}

// Both loops walk single items. This is a transpose, unless both sides are walked in the same order.
bool try_transpose(const Move& m, i64 item, const u8* from, u8* to) {
  if (m.length != 1 || m.inner.count == 1 || m.outer.count == 1) return false;
  MoveLoop row = m.inner, column = m.outer;
  if (row.to_stride > column.to_stride) std::swap(row, column);
  if (row.from_stride <= column.from_stride) return false;
  TransposeShape shape;
  shape.rows = row.count;
  shape.columns = column.count;
  shape.from_row = row.from_stride;
  shape.from_step = column.from_stride;
  shape.to_row = column.to_stride;
  shape.to_step = row.to_stride;
  transpose(shape, item, from, to);
  return true;
}

}  // namespace

i64 first_unlike(const Move& m, i64 item, ItemsIn from, ItemsIn to) {
  for (i64 o = 0; o < m.outer.count; o++)
    for (i64 i = 0; i < m.inner.count; i++) {
      const u8* f =
          from.data + (m.from - from.first + o * m.outer.from_stride + i * m.inner.from_stride) * item;
      i64 first = m.to + o * m.outer.to_stride + i * m.inner.to_stride;
      const u8* t = to.data + (first - to.first) * item;
      if (std::memcmp(f, t, static_cast<std::size_t>(m.length * item)) == 0) continue;
      for (i64 k = 0; k < m.length; k++)
        if (std::memcmp(f + k * item, t + k * item, static_cast<std::size_t>(item)) != 0) return first + k;
    }
  return -1;
}

void apply_move(const Move& m, i64 item, ItemsIn from, ItemsOut to) {
  u8* t = to.data + (m.to - to.first) * item;
  if (m.kind == MoveKind::kZero) return zero_rows(m, item, t);
  const u8* f = from.data + (m.from - from.first) * item;
  if (try_transpose(m, item, f, t)) return;
  switch (m.length * item) {
    case 1:
      return copy_rows<1>(m, item, f, t);
    case 2:
      return copy_rows<2>(m, item, f, t);
    case 4:
      return copy_rows<4>(m, item, f, t);
    case 8:
      return copy_rows<8>(m, item, f, t);
    case 16:
      return copy_rows<16>(m, item, f, t);
    case 32:
      return copy_rows<32>(m, item, f, t);
    case 64:
      return copy_rows<64>(m, item, f, t);
    default:
      return copy_rows<0>(m, item, f, t);
  }
}

}  // namespace mckpt::impl
