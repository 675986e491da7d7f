// Chooses how a large task is divided, and divides it.
//
//   way_of         looks at all moves: does one read short pieces? are all strips of rows of one source?
//   windows        steps of `budget` through each destination
//   source_rows    steps of whole rows through the source; the window of each destination ends where the rows
//                  that were read so far end in it
//   between_moves  one destination: cuts only where no move reaches over the cut, so between experts
//   together       several destinations, sorted by the first source byte that they read: one whose reach
//                  begins where all before it have ended may begin a new slice
#include "io/copy/slices.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "core/items/move.h"
#include "core/items/plan.h"

namespace mckpt::impl {
namespace {

constexpr i64 kLongRunBytes = 16 << 10;  // a read of this much costs no more a byte than a larger one

// kWindows: long runs. kSourceRows: strips. kWhole: anything else.
enum class Way { kWindows, kSourceRows, kWhole };

bool reads_in_pieces(const Plan& plan, const Move& m) {
  if (m.kind == MoveKind::kZero || m.length * plan.source(m.slot).item_bytes >= kLongRunBytes) return false;
  return (m.inner.count > 1 && m.inner.from_stride != m.length) || m.outer.count > 1;
}

// True for a move that takes the same columns of each row and writes them without gaps.
bool is_strip(const Move& m) {
  return m.outer.count == 1 && m.inner.from_stride > m.length && m.inner.to_stride == m.length;
}

Way way_of(const Plan& plan) {
  bool pieces = false, strips = true;
  i32 slot = -1;
  i64 row = 0;
  for (const PlannedMove& p : plan.moves()) {
    const Move& m = p.move;
    pieces |= reads_in_pieces(plan, m);
    bool flat =
        m.kind != MoveKind::kZero && m.inner.count == 1 && m.outer.count == 1;  // the ragged end of a strip
    strips &= m.kind != MoveKind::kZero && m.kind != MoveKind::kEqual && (slot < 0 || slot == m.slot) &&
              (flat || is_strip(m));
    slot = m.slot;
    if (is_strip(m)) {
      strips &= row == 0 || row == m.inner.from_stride;
      row = m.inner.from_stride;
    }
  }
  return !pieces ? Way::kWindows : strips && row > 0 ? Way::kSourceRows : Way::kWhole;
}

std::vector<Slice> windows(const Plan& plan, i64 bytes) {
  std::vector<Slice> slices;
  for (i32 d = 0; d < plan.destination_count(); d++) {
    const Region& r = plan.destination(d);
    i64 step = std::max<i64>(bytes / r.item_bytes, 1);
    for (i64 at = 0; at < r.items; at += step) slices.push_back({{d, {at, std::min(at + step, r.items)}}});
  }
  return slices;
}

// The source bytes that a destination reads, from the first to the last.
struct Reach {
  i32 destination = 0;
  std::pair<i32, i64> begin{INT32_MAX, 0}, end{-1, 0};  // file and byte
};

std::vector<Reach> reaches(const Plan& plan) {
  std::vector<Reach> out(static_cast<std::size_t>(plan.destination_count()));
  for (std::size_t d = 0; d < out.size(); d++) out[d].destination = static_cast<i32>(d);
  for (const PlannedMove& p : plan.moves()) {
    if (p.move.kind == MoveKind::kZero) continue;
    Reach& r = out[p.destination];
    const Region& source = plan.source(p.move.slot);
    ItemRun run = p.move.source();
    r.begin = std::min(r.begin, {source.file, source.offset + run.begin * source.item_bytes});
    r.end = std::max(r.end, {source.file, source.offset + run.end() * source.item_bytes});
  }
  return out;
}

// Destinations whose source bytes interleave share a slice; a slice of at least `budget_bytes` ends where
// they do not. So a fused tensor is copied expert by expert, whatever files its parts go to. `most_bytes` is
// the only limit that cuts through source bytes which are shared.
std::vector<Slice> together(const Plan& plan, i64 budget_bytes, i64 most_bytes) {
  std::vector<Reach> order = reaches(plan);
  std::ranges::stable_sort(order, {}, &Reach::begin);
  std::vector<Slice> slices;
  i64 used = 0;
  std::pair<i32, i64> read_to{-1, 0};
  auto take = [&](const Window& w, i64 bytes, bool apart) {
    if (slices.empty() || used + bytes > most_bytes || (apart && used >= budget_bytes))
      slices.emplace_back(), used = 0;
    slices.back().push_back(w);
    used += bytes;
  };
  for (const Reach& r : order) {
    const Region& region = plan.destination(r.destination);
    i64 step = std::max<i64>(most_bytes / region.item_bytes, 1);
    bool apart = r.begin >= read_to;
    for (i64 at = 0; at < region.items; at += step, apart = false) {
      ItemRange items{at, std::min(at + step, region.items)};
      take({r.destination, items}, items.items() * region.item_bytes, apart);
    }
    read_to = std::max(read_to, r.end);
  }
  return slices;
}

// Slices of one destination, cut where no move reaches over the cut: between the experts of a fused tensor.
std::vector<Slice> between_moves(const Plan& plan, i64 budget_bytes, i64 most_bytes) {
  std::vector<ItemRange> moves;
  for (const PlannedMove& p : plan.moves()) moves.push_back({p.move.to, p.move.destination().end()});
  std::ranges::sort(moves, {}, &ItemRange::begin);
  const Region& region = plan.destination(0);
  i64 budget = std::max<i64>(budget_bytes / region.item_bytes, 1),
      most = std::max<i64>(most_bytes / region.item_bytes, 1);
  std::vector<Slice> slices;
  i64 at = 0, reach = 0;
  auto cut_at = [&](i64 end) {
    for (; at < end; at = std::min(at + most, end)) slices.push_back({{0, {at, std::min(at + most, end)}}});
  };
  for (const ItemRange& m : moves) {
    if (m.begin >= reach && m.begin - at >= budget) cut_at(m.begin);
    reach = std::max(reach, m.end);
  }
  cut_at(region.items);
  return slices;
}

std::vector<Slice> source_rows(const Plan& plan, i64 bytes) {
  i64 row = 0;
  for (const PlannedMove& p : plan.moves())
    if (p.move.inner.count > 1) row = p.move.inner.from_stride;
  const Region& source = plan.source(plan.moves()[0].move.slot);
  i64 step = std::max<i64>(bytes / (row * source.item_bytes), 1) * row;
  std::vector<i64> done(static_cast<std::size_t>(plan.destination_count()));
  std::vector<Slice> slices;
  std::vector<Move> pieces;
  for (i64 at = 0; at < source.items; at += step) {
    std::vector<i64> end = done;
    for (const PlannedMove& p : plan.moves()) {
      pieces.clear();
      clip_source(p.move, {at, at + step}, pieces);
      for (const Move& m : pieces) {
        i64& e = end[p.destination];
        e = std::max(e, m.destination().end());
      }
    }
    Slice slice;
    for (std::size_t d = 0; d < end.size(); d++)
      if (end[d] > done[d]) slice.push_back({static_cast<i32>(d), {done[d], end[d]}});
    if (!slice.empty()) slices.push_back(std::move(slice));
    done = std::move(end);
  }
  return slices;
}

}  // namespace

std::vector<Slice> slices_of(const Plan& plan, i64 budget_bytes, i64 most_bytes) {
  switch (way_of(plan)) {
    case Way::kWindows:
      return windows(plan, budget_bytes);
    case Way::kSourceRows:
      return source_rows(plan, budget_bytes);
    case Way::kWhole:
      return plan.destination_count() == 1 ? between_moves(plan, budget_bytes, most_bytes)
                                           : together(plan, budget_bytes, most_bytes);
  }
  return {};
}

}  // namespace mckpt::impl
