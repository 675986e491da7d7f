// Checks, shortens and cuts runs. A cut takes a part of the local order: the middle of the walk keeps its
// loops, the steps that the cut divides become runs of their own.
//
//   x x x x|x x x x|x x x x      a run of 3 steps of 4 items
//       [     cut       )        local positions [2, 10)
//       a a|b b b b|c c          three runs: the rest of step 0, step 1, the front of step 2
#include "core/items/item_run.h"
#include "core/base/error.h"

#include <algorithm>

namespace mckpt::impl {
namespace {

// Cuts the walk of one outer step.
void cut_rows(ItemRun run, ItemRange r, std::vector<ItemRun>& out) {
  run.outer = {};
  auto emit = [&](i64 first_row, i64 rows, i64 skip, i64 length) {
    if (rows <= 0 || length <= 0) return;
    ItemRun piece = run;
    piece.begin += first_row * run.inner.stride + skip;
    piece.length = length;
    piece.inner = rows == 1 ? Loop{} : Loop{run.inner.stride, rows};
    out.push_back(piece);
  };
  if (r.empty()) return;
  i64 first = r.begin / run.length, last = r.end / run.length;
  i64 head = r.begin % run.length, tail = r.end % run.length;
  if (first == last) return emit(first, 1, head, tail - head);
  if (head > 0) emit(first++, 1, head, run.length - head);
  emit(first, last - first, 0, run.length);
  emit(last, 1, 0, tail);
}

}  // namespace

// All empty results are {0, 0}, so that results can be compared.
ItemRange intersection(ItemRange a, ItemRange b) {
  ItemRange r{std::max(a.begin, b.begin), std::min(a.end, b.end)};
  return r.empty() ? ItemRange{} : r;
}

// Position 7 of a run of 3 steps of 4 items: step 1, item 3 of it.
i64 ItemRun::at(i64 local) const {
  i64 k = local % length, step = local / length;
  return begin + k + step % inner.count * inner.stride + step / inner.count * outer.stride;
}

// Strides are not negative, so the last step of both loops has the largest item.
i64 ItemRun::end() const {
  if (items() == 0) return begin;
  return begin + length + (inner.count - 1) * inner.stride + (outer.count - 1) * outer.stride;
}

// A loop of one step has no stride that counts. The smaller stride must hold a whole length, the larger one
// all steps of the smaller loop.
void check_run(const ItemRun& run, i64 slot_items) {
  auto refuse = [&](const char* why) {
    throw Error(Code::kBadRun, cat("the item run ", to_string(run), " ", why))
        .expected(cat("items of [0, ", slot_items, ")"));
  };
  if (run.begin < 0 || run.length < 0 || run.inner.count < 0 || run.outer.count < 0 || run.inner.stride < 0 ||
      run.outer.stride < 0)
    refuse("has a negative number");
  i64 steps = checked_mul(run.inner.count, run.outer.count, "the number of steps of an item run");
  if (checked_mul(run.length, steps, "the number of items of an item run") == 0) return;
  Loop small = run.inner, big = run.outer;
  if (big.count == 1 || (small.count > 1 && small.stride > big.stride)) std::swap(small, big);
  if (small.count == 1) small.stride = 0;
  if (big.count == 1) big.stride = 0;
  if (small.count > 1 && small.stride < run.length) refuse("visits an item twice");
  i64 extent =
      checked_add(checked_mul(small.stride, small.count - 1, "an item run"), run.length, "an item run");
  if (big.count > 1 && big.stride < extent) refuse("visits an item twice");
  i64 span = checked_add(checked_mul(big.stride, big.count - 1, "an item run"), extent, "an item run");
  if (checked_add(run.begin, span, "an item run") > slot_items) refuse("leaves its tensor");
}

// Loops of one step are removed, an inner loop without gaps becomes length, and an outer loop that continues
// the inner one is joined to it.
ItemRun canonical(const ItemRun& run) {
  ItemRun r = run;
  if (r.items() == 0) return {r.slot, r.begin, 0, {}, {}};
  auto settle = [&] {
    if (r.outer.count == 1) r.outer = {};
    if (r.inner.count == 1) r.inner = r.outer, r.outer = {};
  };
  settle();
  if (r.inner.count > 1 && r.inner.stride == r.length) {
    r.length *= r.inner.count;
    r.inner = {};
    settle();
    if (r.inner.count > 1 && r.inner.stride == r.length) r.length *= r.inner.count, r.inner = {};
  } else if (r.outer.count > 1 && r.outer.stride == r.inner.stride * r.inner.count) {
    r.inner.count *= r.outer.count;
    r.outer = {};
  }
  return r;
}

// The steps of the outer loop that the range contains wholly stay one run; the steps at both ends are cut
// inside.
void cut(const ItemRun& run, ItemRange r, std::vector<ItemRun>& out) {
  if (r.empty()) return;
  i64 block = run.length * run.inner.count;
  auto step = [&](i64 o) {
    ItemRun at = run;
    at.begin += o * run.outer.stride;
    return at;
  };
  i64 first = r.begin / block, last = r.end / block;
  i64 head = r.begin % block, tail = r.end % block;
  if (first == last) return cut_rows(step(first), {head, tail}, out);
  if (head > 0) cut_rows(step(first++), {head, block}, out);
  if (first < last) {
    ItemRun whole = step(first);
    whole.outer = last - first == 1 ? Loop{} : Loop{run.outer.stride, last - first};
    out.push_back(whole);
  }
  if (tail > 0) cut_rows(step(last), {0, tail}, out);
}

// Cuts the list at local positions of the whole list: each run that the range touches is cut separately.
std::vector<ItemRun> cut(std::span<const ItemRun> runs, ItemRange range) {
  std::vector<ItemRun> out;
  i64 at = 0;
  for (const ItemRun& run : runs) {
    if (at >= range.end) break;
    i64 n = run.items();
    ItemRange here = intersection({range.begin - at, range.end - at}, {0, n});
    if (!here.empty()) cut(run, here, out);
    at += n;
  }
  return out;
}

i64 items_of(std::span<const ItemRun> runs) {
  i64 n = 0;
  for (const ItemRun& run : runs) n += run.items();
  return n;
}

std::string to_string(const ItemRun& run) {
  std::string out = run.slot == 0 ? "[" : cat(run.slot, "[");
  out += cat(run.begin, "+", run.length);
  for (const Loop& loop : {run.inner, run.outer})
    if (loop.count != 1) out += cat(" x", loop.count, "/", loop.stride);
  return out + "]";
}

std::string to_string(std::span<const ItemRun> runs) {
  std::string out;
  for (const ItemRun& run : runs) out += to_string(run);
  return out;
}

}  // namespace mckpt::impl
