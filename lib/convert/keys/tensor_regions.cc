#include "convert/keys/tensor_regions.h"

#include <algorithm>

#include "io/values/strided.h"

namespace mckpt {

void check_plain(const Store& store, i64 tensor, const Chunk& chunk, const ChunkData& data) {
  bool row_major = data.strides.empty() || is_row_major(chunk.sizes, data.strides);
  if (row_major && !data.big_endian && !data.unpacked) return;
  throw Error(Code::kUnsupportedTensor, "a tensor is stored in another order than row by row")
      .file(file_path(store, chunk.file))
      .tensor(store.name(tensor))
      .help("save it as a contiguous tensor first");
}

const std::vector<TensorRegions::InPlan::Block>& TensorRegions::InPlan::blocks_of(i32 tensor) {
  for (auto& [t, blocks] : tensors_)
    if (t == tensor) return blocks;
  const Store& store = regions_.store_;
  std::vector<Block> blocks;
  std::span<const i64> dims = store.dims(tensor);
  for (i64 i = 0; i < store.chunk_count(tensor); i++) {
    Chunk c = store.chunk(tensor, i);
    if (c.replica) continue;
    ChunkData data = store.resolve(tensor, i);
    check_plain(store, tensor, c, data);
    if (regions_.sums_ && data.checksum) regions_.sums_->expect(*data.checksum);
    if (!dims.empty() && !std::ranges::equal(c.sizes.subspan(1), dims.subspan(1)))
      throw Error(Code::kUnsupportedTensor, "a tensor is cut into columns over several files")
          .tensor(store.name(tensor))
          .help("put its pieces together first, for instance with torch's consolidate_safetensors_files");
    i64 row = 1;
    for (i64 d : dims.empty() ? dims : dims.subspan(1)) row *= d;
    i64 begin = c.offsets.empty() ? 0 : c.offsets[0] * row, items = Shape(c.sizes).items();
    i32 item_bytes = static_cast<i32>(dtype_bytes(data.dtype, 1));
    blocks.push_back(
        {begin, begin + items, plan_.add_source({data.file, data.offset, items, item_bytes, tensor})});
  }
  return tensors_.emplace_back(tensor, std::move(blocks)).second;
}

void TensorRegions::InPlan::add(i32 destination, Move move) {
  if (move.kind == MoveKind::kZero) return plan_.add(destination, move);
  const std::vector<Block>& blocks = blocks_of(move.slot);
  if (blocks.size() == 1) {
    move.slot = blocks[0].region;
    return plan_.add(destination, move);
  }
  std::vector<Move> parts;
  for (const Block& b : blocks) {
    parts.clear();
    clip_source(move, {b.begin, b.end}, parts);
    for (Move part : parts) {
      part.slot = b.region;
      part.from -= b.begin;
      plan_.add(destination, part);
    }
  }
}

}  // namespace mckpt
