#include "convert/jobs/chunk_side.h"

#include <algorithm>

#include "convert/jobs/box_moves.h"
#include "core/items/item_run.h"
#include "core/items/move.h"

namespace mckpt::impl {
namespace {

// Rows of the tensor are one stretch of its items.
bool has_whole_rows(std::span<const i64> sizes, std::span<const i64> dims) {
  return dims.empty() || std::ranges::equal(sizes.subspan(1), dims.subspan(1));
}

// As the items that the box has in common with all of the tensor, in the order of the box.
std::vector<ItemRun> runs_of_box(i32 slot, const ChunkList::Box& box, std::span<const i64> dims) {
  i64 items = Shape(box.sizes).items();
  if (has_whole_rows(box.sizes, dims))
    return {{slot, dims.empty() ? 0 : box.offsets[0] * Shape(dims).row_items(), items, {}, {}}};
  std::vector<i64> zero(dims.size());
  std::vector<Move> moves;
  append_box_moves({zero, dims}, {box.offsets, box.sizes}, slot, moves);
  std::vector<ItemRun> runs;
  for (const Move& m : moves) runs.push_back(m.source());
  return runs;
}

}  // namespace

std::vector<ItemRun> ChunkSide::runs(i64 chunk) const {
  ChunkList::Box box = chunks.box(chunk);
  if (is_box(chunk)) return runs_of_box(slot(chunk), box, chunks.dims(chunk));
  return keys->runs(key(chunk), box.offsets, box.sizes);
}

}  // namespace mckpt::impl
