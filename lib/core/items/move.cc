// Clips moves to windows, and overlaps two runs of one tensor: the items that both contain become moves from
// the local order of one to the local order of the other.
//
//   tensor [2, 4]     from: columns [0, 2)  [0+2 x2/4]    local order  0 1 4 5
//                     to: row 1             [4+4]         local order  4 5 6 7
//   in common         items 4 and 5                       copy [2+2] -> [0+2]
//
// This is how one sharding becomes another: a chunk of the source and a chunk of the result are both runs
// over the whole tensor. Two walks of the same row width are intersected as rows and columns, in few moves.
// Walks of different widths, and columns that need both loops themselves, are followed row by row.
//
// A move that is clipped: a step that the window cuts becomes a move of its own.
//
//   [0+4 x3/10] in the window [2, 14)     [2+2] [10+4]
#include "core/items/move.h"

#include "core/base/text.h"
#include "core/items/item_run.h"

#include <algorithm>

namespace mckpt::impl {
namespace {

// Whether a window is over the source or the destination of a move.
enum class Side { kFrom, kTo };

// The stride of a loop, and the first item of a move, on one side.
i64 stride(const MoveLoop& loop, Side side) {
  return side == Side::kFrom ? loop.from_stride : loop.to_stride;
}
i64 begin(const Move& move, Side side) { return side == Side::kFrom ? move.from : move.to; }

// The move with one of its loops limited to the steps [first, first + count).
Move held(const Move& move, MoveLoop Move::*loop, i64 first, i64 count) {
  Move m = move;
  m.from += first * (move.*loop).from_stride;
  m.to += first * (move.*loop).to_stride;
  if (count == 1)
    m.*loop = {};
  else
    (m.*loop).count = count;
  return m;
}

// A move without loops: one range, cut at both ends of the window.
void clip_length(const Move& move, Side side, ItemRange window, std::vector<Move>& out) {
  ItemRange here =
      intersection({window.begin - begin(move, side), window.end - begin(move, side)}, {0, move.length});
  if (here.empty()) return;
  Move m = move;
  m.from += here.begin;
  m.to += here.begin;
  m.length = here.items();
  out.push_back(m);
}

void clip(const Move& move, Side side, ItemRange window, std::vector<Move>& out);

// Steps of `loop` that are wholly in the window stay one move; the steps that the window's begin and end cut
// are clipped separately. `extent`: the items from the first to behind the last of one step.
void clip_loop(const Move& move, MoveLoop Move::*loop, i64 extent, Side side, ItemRange window,
               std::vector<Move>& out) {
  i64 step = stride(move.*loop, side), count = (move.*loop).count;
  i64 lo = std::max<i64>(window.begin - begin(move, side), 0), hi = window.end - begin(move, side);
  if (hi <= lo) return;
  i64 first = ceil_div(lo, step);
  i64 last = hi < extent ? 0 : std::min((hi - extent) / step + 1, count);  // one past the last whole step
  i64 head = lo / step, tail = std::min((hi - 1) / step, count - 1);
  if (head < count && head < first) clip(held(move, loop, head, 1), side, window, out);
  if (first < last) out.push_back(held(move, loop, first, last - first));
  if (tail >= std::max(first, last)) clip(held(move, loop, tail, 1), side, window, out);
}

// The loop with the larger stride is cut first: its steps do not overlap, as the run is valid.
void clip(const Move& move, Side side, ItemRange window, std::vector<Move>& out) {
  if (move.items() == 0 || window.empty()) return;
  bool inner = move.inner.count > 1, outer = move.outer.count > 1;
  if (!inner && !outer) return clip_length(move, side, window, out);
  bool outer_is_big = outer && (!inner || stride(move.outer, side) > stride(move.inner, side));
  auto big = outer_is_big ? &Move::outer : &Move::inner, small = outer_is_big ? &Move::inner : &Move::outer;
  i64 extent = stride(move.*small, side) * ((move.*small).count - 1) + move.length;
  clip_loop(move, big, extent, side, window, out);
}

void overlap_rows(const Move& from, const Move& to, std::vector<Move>& out);

// In this and the next functions a Move describes an owner of items: `from` counts items of the tensor, `to`
// the owner's local order. Here the owner `to` has one contiguous range.
void overlap_contiguous(const Move& from, const Move& to, std::vector<Move>& out) {
  std::vector<Move> pieces;
  clip(from, Side::kFrom, {to.from, to.from + to.length}, pieces);
  for (const Move& m : pieces) {  // item -> local of `from`; the local of `to` is the item less a constant
    out.push_back(reversed(m));
    out.back().to += to.to - to.from;
  }
}

// Both sides walk rows of one width, each within its columns: rows are intersected with rows, columns with
// columns. Returns false, with nothing appended, if the two do not walk rows of one width.
bool overlap_boxes(const Move& from, const Move& to, std::vector<Move>& out) {
  auto big_of = [](const Move& m) {
    bool outer = m.outer.count > 1 && (m.inner.count == 1 || m.outer.from_stride > m.inner.from_stride);
    return outer ? &Move::outer : &Move::inner;
  };
  auto a = big_of(from), b = big_of(to);
  i64 width = (from.*a).from_stride;
  if ((from.*a).count == 1 || (to.*b).count == 1 || (to.*b).from_stride != width) return false;
  Move from_row = held(from, a, 0, 1), to_row = held(to, b, 0, 1);
  i64 from_first = from.from / width, to_first = to.from / width;
  from_row.from %= width;
  to_row.from %= width;
  if (from_row.source().end() > width || to_row.source().end() > width) return false;
  ItemRange rows =
      intersection({from_first, from_first + (from.*a).count}, {to_first, to_first + (to.*b).count});
  if (rows.empty()) return true;
  std::vector<Move> columns;
  overlap_rows(from_row, to_row, columns);
  MoveLoop loop{(from.*a).to_stride, (to.*b).to_stride, rows.items()};
  for (Move m : columns) {
    m.from += (rows.begin - from_first) * loop.from_stride;
    m.to += (rows.begin - to_first) * loop.to_stride;
    if (m.inner.count == 1) {
      m.inner = loop;
      out.push_back(m);
    } else if (m.outer.count == 1) {
      m.outer = loop;
      out.push_back(m);
    } else {
      for (i64 row = 0; row < loop.count; row++) {
        Move one = m;
        one.from += row * loop.from_stride;
        one.to += row * loop.to_stride;
        out.push_back(one);
      }
    }
  }
  return true;
}

// A side without loops is one piece and the other is clipped to it; two walks of one width meet as boxes;
// else one side is taken step by step.
void overlap_rows(const Move& from, const Move& to, std::vector<Move>& out) {
  bool from_flat = from.inner.count == 1 && from.outer.count == 1,
       to_flat = to.inner.count == 1 && to.outer.count == 1;
  if (to_flat) return overlap_contiguous(from, to, out);
  if (from_flat) {
    std::vector<Move> pieces;
    overlap_contiguous(to, from, pieces);
    for (const Move& m : pieces) out.push_back(reversed(m));
    return;
  }
  if (overlap_boxes(from, to, out)) return;
  // Different widths: step through the rows of the side with fewer rows.
  bool step_to = to.inner.count * to.outer.count <= from.inner.count * from.outer.count;
  const Move& stepped = step_to ? to : from;
  auto loop = stepped.outer.count > 1 ? &Move::outer : &Move::inner;
  for (i64 i = 0; i < (stepped.*loop).count; i++) {
    Move one = held(stepped, loop, i, 1);
    step_to ? overlap_rows(from, one, out) : overlap_rows(one, to, out);
  }
}

}  // namespace

ItemRun Move::source() const {
  return {slot, from, length, {inner.from_stride, inner.count}, {outer.from_stride, outer.count}};
}

ItemRun Move::destination() const {
  return {0, to, length, {inner.to_stride, inner.count}, {outer.to_stride, outer.count}};
}

// The destination side of each loop is dense: a step of the inner loop writes `length` items, a step of the
// outer one a whole inner loop.
Move move_of(const ItemRun& run, i64 to) {
  Move m;
  m.slot = run.slot;
  m.from = run.begin;
  m.to = to;
  m.length = run.length;
  if (run.inner.count != 1) m.inner = {run.inner.stride, run.length, run.inner.count};
  if (run.outer.count != 1) m.outer = {run.outer.stride, run.length * run.inner.count, run.outer.count};
  return m;
}

void clip_source(const Move& move, ItemRange window, std::vector<Move>& out) {
  clip(move, Side::kFrom, window, out);
}

void clip_destination(const Move& move, ItemRange window, std::vector<Move>& out) {
  clip(move, Side::kTo, window, out);
}

// Runs whose ranges of items are apart have nothing in common, which is the usual case among many chunks.
void overlap(const ItemRun& from, const ItemRun& to, std::vector<Move>& out) {
  if (from.items() == 0 || to.items() == 0) return;
  if (from.end() <= to.begin || to.end() <= from.begin) return;
  overlap_rows(move_of(from, 0), move_of(to, 0), out);
}

Move reversed(const Move& m) {
  auto turn = [](MoveLoop l) { return MoveLoop{l.to_stride, l.from_stride, l.count}; };
  Move r = m;
  std::swap(r.from, r.to);
  r.inner = turn(m.inner);
  r.outer = turn(m.outer);
  return r;
}

// Two forms are joined: flat moves that follow each other on both sides, and loops (or one more step) that
// continue a loop.
bool join(Move& a, const Move& b) {
  if (a.kind != b.kind || a.slot != b.slot) return false;
  auto follows = [&](i64 from_step, i64 to_step) {
    return (a.kind == MoveKind::kZero || b.from == a.from + from_step) && b.to == a.to + to_step;
  };
  bool flat = a.inner.count == 1 && a.outer.count == 1 && b.inner.count == 1 && b.outer.count == 1;
  if (flat && follows(a.length, a.length)) {
    a.length += b.length;
    return true;
  }
  if (a.length != b.length || a.outer.count != 1 || b.outer.count != 1 || a.inner.count == 1) return false;
  bool same_loop = b.inner.count == 1 ||
                   (b.inner.from_stride == a.inner.from_stride && b.inner.to_stride == a.inner.to_stride);
  if (!same_loop || !follows(a.inner.from_stride * a.inner.count, a.inner.to_stride * a.inner.count))
    return false;
  a.inner.count += b.inner.count;
  return true;
}

std::string to_string(const Move& move) {
  constexpr std::string_view kWords[] = {"copy ", "zero", "again ", "equal "};  // by MoveKind
  std::string from(kWords[static_cast<std::size_t>(move.kind)]);
  if (move.kind != MoveKind::kZero) from += to_string(move.source());
  return cat(from, " -> ", to_string(move.destination()));
}

}  // namespace mckpt::impl
