// The runs of a chunk come from the key table where the key's meaning is known. A chunk that is a box of a
// slot needs no table: whole rows are one run, and a narrower box is what the box has in common with all of
// the tensor.
//
//   slot of shape [8, 4]     box rows 2-4, all columns      [8+12]
//                            box rows 2-4, columns 1-2      [9+2 x3/4]
#include "convert/jobs/chunk_side.h"

#include "convert/jobs/box_moves.h"

namespace mckpt::impl {
namespace {

// Whether the box has every index of all dimensions but the first; its items are then one stretch of the
// tensor's.
bool has_whole_rows(std::span<const i64> sizes, std::span<const i64> dims) {
  return dims.empty() || std::ranges::equal(sizes.subspan(1), dims.subspan(1));
}

// pre: the box is within the tensor and `sizes` and `dims` have the same number of dimensions.
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
