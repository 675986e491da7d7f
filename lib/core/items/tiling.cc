// Runs without loops are intervals: sort and sweep. If there are loops, let W be the largest stride. The
// items are rows of W items, and every run is a pattern inside a row that repeats over a range of rows (its
// ragged ends are ranges of one row):
//
//   row 0   a a b b      columns [0, 2) and [2, 4) of rows of W = 4 items: run a and run b repeat one pattern
//   row 1   a a b b      each over rows 0 to 2, so one row is checked instead of three
//   row 2   a a b b
//
// Between any two rows where a range begins or ends the patterns must tile one row. That is the same question
// with one loop less.
#include "core/items/tiling.h"

#include <algorithm>
#include <string>
#include <unordered_set>

#include "core/items/item_run.h"
#include "core/items/move.h"

namespace mckpt::impl {
namespace {

// A walk within one row, and the rows that repeat it.
struct RowPattern {
  ItemRange rows;
  ItemRun run;  // within one row
};

// The case without loops: sorted by begin, each range must begin where the range before it ends.
std::optional<TilingFault> interval_fault(std::vector<ItemRange> ranges, i64 items) {
  std::sort(ranges.begin(), ranges.end(),
            [](const ItemRange& a, const ItemRange& b) { return a.begin < b.begin; });
  i64 at = 0;
  for (const ItemRange& r : ranges) {
    if (r.empty()) continue;
    if (r.begin > at) return TilingFault{at, 0};
    if (r.begin < at) return TilingFault{r.begin, 2};
    at = r.end;
  }
  if (at < items) return TilingFault{at, 0};
  return std::nullopt;
}

// Appends the rows of `run` as patterns of rows of `width` items.
void append_patterns(const ItemRun& run, i64 width, std::vector<RowPattern>& out) {
  auto of_row = [&](i64 first_row, i64 rows, ItemRun pattern) {
    pattern.begin -= first_row * width;
    out.push_back({{first_row, first_row + rows}, canonical(pattern)});
  };
  i64 first = run.begin / width;
  if (run.end() <= (first + 1) * width) return of_row(first, 1, run);
  bool outer_is_rows = run.outer.count > 1 && run.outer.stride == width;
  bool inner_is_rows = !outer_is_rows && run.inner.count > 1 && run.inner.stride == width;
  if (outer_is_rows || inner_is_rows) {
    ItemRun row = run;
    Loop loop = outer_is_rows ? row.outer : row.inner;
    (outer_is_rows ? row.outer : row.inner) = {};
    if (row.end() <= (first + 1) * width) return of_row(first, loop.count, row);
    for (i64 i = 0; i < loop.count; i++, row.begin += width) append_patterns(row, width, out);
    return;
  }
  // A walk over many rows with steps smaller than a row: a ragged first and last row, and a middle that
  // repeats if the steps divide the row.
  i64 last = (run.end() - 1) / width;
  std::vector<Move> pieces;
  auto row_of = [&](i64 row, i64 rows) {
    pieces.clear();
    clip_source(move_of(run, 0), {row * width, (row + 1) * width}, pieces);
    for (const Move& piece : pieces) of_row(row, rows, piece.source());
  };
  i64 largest =
      std::max(run.inner.count > 1 ? run.inner.stride : 0, run.outer.count > 1 ? run.outer.stride : 0);
  bool repeats = largest == 0 || (width % largest == 0 && run.outer.count == 1);
  row_of(first, 1);
  if (repeats && last - first > 1) {
    row_of(first + 1, last - first - 1);
  } else {
    for (i64 row = first + 1; row < last; row++) row_of(row, 1);
  }
  row_of(last, 1);
}

// The bytes of a run, to recognise rows with the same patterns.
void append_key(std::string& key, const ItemRun& r) {
  for (i64 v : {r.begin, r.length, r.inner.stride, r.inner.count, r.outer.stride, r.outer.count})
    key.append(reinterpret_cast<const char*>(&v), sizeof v);
}

// Sweeps over the rows; `patterns` sorted by first row.
std::optional<TilingFault> row_fault(std::span<const RowPattern> patterns, i64 width, i64 items) {
  i64 whole_rows = items / width, ragged = items % width, row = 0;
  std::size_t next = 0;
  std::vector<RowPattern> active;
  std::unordered_set<std::string> proved;
  for (i64 end; row < whole_rows + (ragged > 0); row = end) {
    while (next < patterns.size() && patterns[next].rows.begin <= row) active.push_back(patterns[next++]);
    std::erase_if(active, [&](const RowPattern& p) { return p.rows.end <= row; });
    i64 row_items = row < whole_rows ? width : ragged;
    end = row < whole_rows ? whole_rows : whole_rows + 1;
    if (next < patterns.size()) end = std::min(end, patterns[next].rows.begin);
    std::vector<ItemRun> runs;
    std::string key;
    for (const RowPattern& p : active) {
      end = std::min(end, p.rows.end);
      runs.push_back(p.run);
      append_key(key, p.run);
    }
    append_key(key, {0, row_items, 0, {}, {}});
    if (!proved.insert(key).second) continue;
    if (auto fault = tiling_fault(runs, row_items))
      return TilingFault{row * width + fault->item, fault->times};
  }
  return std::nullopt;
}

}  // namespace

std::optional<TilingFault> tiling_fault(std::span<const ItemRange> ranges, i64 items) {
  return interval_fault({ranges.begin(), ranges.end()}, items);
}

// Each level of the recursion removes one loop, so there are at most three.
std::optional<TilingFault> tiling_fault(std::span<const ItemRun> runs, i64 items) {
  std::vector<ItemRun> walks;
  i64 width = 0;
  for (const ItemRun& run : runs) {
    ItemRun w = canonical(run);
    if (w.length == 0) continue;
    walks.push_back(w);
    for (const Loop& loop : {w.inner, w.outer})
      if (loop.count > 1) width = std::max(width, loop.stride);
  }
  if (width == 0) {
    std::vector<ItemRange> ranges;
    for (const ItemRun& w : walks) ranges.push_back({w.begin, w.begin + w.length});
    return interval_fault(std::move(ranges), items);
  }
  std::vector<RowPattern> patterns;
  for (const ItemRun& w : walks) append_patterns(w, width, patterns);
  std::sort(patterns.begin(), patterns.end(),
            [](const RowPattern& a, const RowPattern& b) { return a.rows.begin < b.rows.begin; });
  return row_fault(patterns, width, items);
}

}  // namespace mckpt::impl
