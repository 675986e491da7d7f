// A piece is intersected with every chunk of its tensor when it is added; chunks that contain nothing of it
// are left out. A chunk contributes one stretch of its items, so that a first item and a box describe it;
// rows that are apart are a stretch each.
#include "convert/views/piece_store.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/items/shape.h"
#include "core/items/stretch_boxes.h"
#include "io/file/file.h"
#include "io/values/strided.h"

namespace mckpt::impl {
namespace {

// Bytes that no file has.
class ZeroBytes final : public ByteSource {
 public:
  explicit ZeroBytes(i64 size) : ByteSource(size) {}

 private:
  void read_inside(i64, std::span<u8> to) const override { std::ranges::fill(to, u8{0}); }
};

void check_row_major(const Store& store, i64 tensor, const Chunk& chunk, const ChunkData& data) {
  if (data.strides.empty() || is_row_major(chunk.sizes, data.strides)) return;
  throw Error(Code::kUnsupportedTensor, "a tensor is stored in another order than row by row")
      .file(file_path(store, chunk.file))
      .tensor(store.name(tensor))
      .help("save it as a contiguous tensor first");
}

}  // namespace

PieceStore::PieceStore(std::unique_ptr<Store> source) : StoreView(std::move(source)) {}

void PieceStore::add(std::string name, std::vector<i64> dims, std::vector<StorePiece> pieces) {
  Tensor t{std::move(name), pieces[0].tensor, std::move(dims), {}, 0};
  for (const StorePiece& piece : pieces) {
    if (source().dtype(piece.tensor) != source().dtype(t.dtype_of))
      throw Error(Code::kBadShards, "the parts of a parameter have different types")
          .file(root_)
          .tensor(source().name(piece.tensor))
          .expected(dtype_name(source().dtype(t.dtype_of)))
          .found(dtype_name(source().dtype(piece.tensor)));
    auto add_part = [&](Part part) {
      part.first_chunk = t.chunks;
      part.replica = piece.replica;
      t.chunks += part.step_items == 0 ? 1 : std::ssize(part.offsets) / std::ssize(part.sizes);
      t.parts.push_back(std::move(part));
    };
    if (!piece.zeros.empty()) {
      add_part({.tensor = piece.tensor,
                .chunk = 0,
                .first_item = 0,
                .offsets = piece.to,
                .sizes = piece.zeros,
                .zeros = true});
      continue;
    }
    for (i64 c : chunks_near(piece)) {
      if (!piece.as.empty()) {
        for (Part& part : reshaped(piece, c)) add_part(std::move(part));
        continue;
      }
      std::optional<Part> part = piece.axes.empty() ? part_of(piece, c) : part_along(piece, c, t.dims.size());
      if (part) add_part(*std::move(part));
    }
  }
  tensors_.push_back(std::move(t));
}

// The chunks that may contain something of the piece, in the order of the source. A stack of 384 experts in
// 1,024 chunks is 384 pieces one after the other, each in few of these chunks, so they are sorted for the
// second one.
std::vector<i64> PieceStore::chunks_near(const StorePiece& piece) {
  std::vector<i64> out;
  const i64 count = source().chunk_count(piece.tensor);
  const bool again = by_begin_.tensor == piece.tensor;
  if (!again) by_begin_ = {piece.tensor, 0, {}};
  const bool along = !piece.axes.empty();
  if (!again || (!along && piece.at.empty() && piece.rows < 0)) {
    for (i64 c = 0; c < count; c++) out.push_back(c);
    return out;
  }
  auto& chunks = by_begin_.chunks;
  for (i64 c = std::ssize(chunks); c < count; c++) {
    Chunk chunk = source().chunk(piece.tensor, c);
    chunks.emplace_back(chunk.offsets[0], c);
    by_begin_.longest = std::max(by_begin_.longest, chunk.sizes[0]);
    if (c == count - 1) std::ranges::sort(chunks);
  }
  const PieceAxis near = along              ? piece.axes[0]
                         : piece.at.empty() ? PieceAxis{piece.first_row, piece.rows, piece.row_step}
                                            : PieceAxis{piece.at[0]};
  const i64 first = near.first, last = near.first + (near.count - 1) * near.step;
  auto chunk = std::ranges::lower_bound(chunks, std::pair(first - by_begin_.longest + 1, i64{0}));
  for (; chunk != chunks.end() && chunk->first <= last; ++chunk) out.push_back(chunk->second);
  std::ranges::sort(out);
  return out;
}

// The rows of the piece that are in the chunk, of which `part` has the box. Every row is a chunk of its own:
// rows 1, 3, 5 of a chunk that has rows 2 to 5 are its items from row 1 and from row 3 on.
std::optional<PieceStore::Part> PieceStore::rows_apart(Part part, const StorePiece& piece, i64 first_item) {
  const i64 begin = part.offsets[0], end = begin + part.sizes[0], step = piece.row_step;
  const i64 row_items = Shape(part.sizes).row_items();
  const std::vector<i64> behind(part.offsets.begin() + 1, part.offsets.end());
  const i64 first = std::max<i64>(0, (begin - piece.first_row + step - 1) / step);
  part.offsets.clear();
  for (i64 r = first; r < piece.rows && piece.first_row + r * step < end; r++) {
    part.offsets.push_back(piece.to_row + r);
    part.offsets.insert(part.offsets.end(), behind.begin(), behind.end());
  }
  if (part.offsets.empty()) return std::nullopt;
  part.sizes[0] = 1;
  part.first_item = first_item + (piece.first_row + first * step - begin) * row_items;
  part.step_items = step * row_items;
  return part;
}

// The part of the piece that a chunk of the source contains, or nothing. Fixed indices along the first
// dimensions and then a range of rows are one stretch of the chunk's items: chunk [1, 0, 0] + [1, 28, 12] and
// rows 14 to 27 of layer 1 are the 168 items from item 168 on.
std::optional<PieceStore::Part> PieceStore::part_of(const StorePiece& piece, i64 chunk) const {
  Chunk c = source().chunk(piece.tensor, chunk);
  std::size_t depth = piece.at.size();
  i64 first = 0;
  for (std::size_t d = 0; d < depth; d++) {
    i64 inside = piece.at[d] - c.offsets[d];
    if (inside < 0 || inside >= c.sizes[d]) return std::nullopt;
    first = first * c.sizes[d] + inside;
  }
  std::span<const i64> offsets = c.offsets.subspan(depth), sizes = c.sizes.subspan(depth);
  Part out{piece.tensor, chunk, 0, {offsets.begin(), offsets.end()}, {sizes.begin(), sizes.end()}};
  first *= Shape(sizes).items();
  if (piece.row_step > 1) return rows_apart(std::move(out), piece, first);
  if (piece.rows >= 0) {
    i64 begin = std::max(piece.first_row, offsets[0]);
    i64 end = std::min(piece.first_row + piece.rows, offsets[0] + sizes[0]);
    if (begin >= end) return std::nullopt;
    first += (begin - offsets[0]) * Shape(sizes).row_items();
    out.offsets[0] = begin - piece.first_row;
    out.sizes[0] = end - begin;
  }
  if (!out.offsets.empty()) out.offsets[0] += piece.to_row;
  for (std::size_t d = 0; d < piece.to.size(); d++) out.offsets[d] += piece.to[d];
  out.first_item = first;
  return out;
}

// The part of a piece with axes that a chunk of the source contains: chunk [0, 10, 0] + [4, 10, 12] has of
// the indices 2, 12 of its second dimension the second one.
std::optional<PieceStore::Part> PieceStore::part_along(const StorePiece& piece, i64 chunk,
                                                       std::size_t rank) const {
  const Chunk c = source().chunk(piece.tensor, chunk);
  Part out{piece.tensor, chunk, 0, std::vector<i64>(rank), std::vector<i64>(rank, 1)};
  out.strides.assign(rank, 1);
  i64 stride = 1;
  for (std::size_t d = c.sizes.size(); d-- > 0; stride *= c.sizes[d]) {
    const PieceAxis& axis = piece.axes[d];
    const i64 before = c.offsets[d] - axis.first, behind = before + c.sizes[d];
    const i64 begin = before <= 0 ? 0 : ceil_div(before, axis.step);
    const i64 end = behind <= 0 ? 0 : std::min(axis.count, ceil_div(behind, axis.step));
    if (begin >= end) return std::nullopt;
    out.first_item += (begin * axis.step - before) * stride;
    if (axis.to_dim < 0) continue;
    out.offsets[axis.to_dim] = axis.to + begin;
    out.sizes[axis.to_dim] = end - begin;
    out.strides[axis.to_dim] = axis.step * stride;
  }
  if (is_row_major(out.sizes, out.strides)) out.strides.clear();
  return out;
}

// The boxes that the items of a chunk are in the other shape. Behind the last dimension that the chunk has
// not all of, its items follow each other in both shapes: chunk [0, 0] + [8, 96] of [16, 96] is one stretch
// of 768 items, and [0, 48] + [8, 48] is 8 of 48 items.
std::vector<PieceStore::Part> PieceStore::reshaped(const StorePiece& piece, i64 chunk) const {
  const Chunk c = source().chunk(piece.tensor, chunk);
  std::span<const i64> dims = source().dims(piece.tensor);
  std::vector<Part> out;
  const i64 items = Shape(c.sizes).items();
  std::size_t whole = dims.size();  // from this dimension on the chunk has all
  while (whole > 0 && c.sizes[whole - 1] == dims[whole - 1]) whole--;
  const std::size_t front = whole == 0 ? 0 : whole - 1;
  const i64 run = Shape(c.sizes.subspan(front)).items();
  // A few bytes of a file can declare any number of rows.
  constexpr i64 kMostRuns = i64{1} << 20;
  if (run > 0 && items / run > kMostRuns)
    throw Error(Code::kSourceShape, "a tensor is cut into too many pieces to have another shape")
        .file(root_)
        .tensor(source().name(piece.tensor))
        .expected(cat("at most ", with_commas(kMostRuns)))
        .found(with_commas(items / run));
  for (i64 first = 0; first < items; first += run) {
    i64 begin = 0;  // of the run, in the tensor
    const std::vector<i64> index = item_index(first, c.sizes);
    for (std::size_t d = 0; d < dims.size(); d++) begin = begin * dims[d] + c.offsets[d] + index[d];
    std::vector<i64> numbers;
    const i64 boxes = stretch_boxes(piece.as, {begin, begin + run}, numbers);
    const auto rank = static_cast<std::ptrdiff_t>(piece.as.size());
    for (i64 b = 0, at = first; b < boxes; b++) {
      auto box = numbers.begin() + 2 * b * rank;
      out.push_back({piece.tensor, chunk, at, {box, box + rank}, {box + rank, box + 2 * rank}});
      at += Shape(out.back().sizes).items();
    }
  }
  return out;
}

void PieceStore::add_object(std::string name, i64 object) {
  Object o = source().objects()[object];
  o.name = std::move(name);
  objects_.push_back(std::move(o));
  object_of_.push_back(object);
}

std::shared_ptr<const PickleValue> PieceStore::object(i64 index) const {
  return source().object(object_of_[index]);
}

PieceStore::Place PieceStore::place(i64 t, i64 index) const {
  const std::vector<Part>& parts = of(t).parts;
  auto behind = std::ranges::upper_bound(parts, index, {}, &Part::first_chunk);
  return {behind[-1], index - behind[-1].first_chunk};
}

Chunk PieceStore::chunk(i64 t, i64 index) const {
  auto [part, row] = place(t, index);
  Chunk out = source().chunk(part.tensor, part.chunk);
  if (part.zeros) out.record_offset = -1, out.record_bytes = 0;
  out.offsets =
      std::span(part.offsets).subspan(static_cast<std::size_t>(row) * part.sizes.size(), part.sizes.size());
  out.sizes = part.sizes;
  out.replica |= part.replica;
  return out;
}

// The source's chunk. Opening its header for each of a thousand rows would be slow.
ChunkData PieceStore::resolved(const Part& part) const {
  if (part.step_items == 0) return source().resolve(part.tensor, part.chunk);
  std::lock_guard lock(mutex_);
  std::pair<i64, i64> wanted(part.tensor, part.chunk);
  if (resolved_of_ != wanted) {
    resolved_ = source().resolve(part.tensor, part.chunk);
    resolved_of_ = wanted;
  }
  return resolved_;
}

ChunkData PieceStore::zeros(const Part& part, DType type) const {
  return {.file = source().chunk(part.tensor, part.chunk).file,
          .dtype = type,
          .unpacked = std::make_shared<const ZeroBytes>(dtype_bytes(type, Shape(part.sizes).items()))};
}

ChunkData PieceStore::resolve(i64 t, i64 index) const {
  auto [part, row] = place(t, index);
  if (part.zeros) return zeros(part, dtype(t));
  return piece_of(resolved(part), t, part, row);
}

// pre: the source has such values, or is_rounded() was false for all tensors.
ChunkData PieceStore::resolve_unrounded(i64 t, i64 index) const {
  auto [part, row] = place(t, index);
  if (part.zeros) return zeros(part, DType::kF32);
  return piece_of(source().unrounded()->resolve_unrounded(part.tensor, part.chunk), t, part, row);
}

bool PieceStore::is_rounded(i64 t) const {
  const UnroundedValues* values = source().unrounded();
  return values &&
         std::ranges::any_of(of(t).parts, [&](const Part& p) { return values->is_rounded(p.tensor); });
}

// A whole chunk is as the source has it, at strides or compressed. A piece of one is a stretch of the chunk's
// items, or at strides in it, only if these are stored row by row.
ChunkData PieceStore::piece_of(ChunkData out, i64 t, const Part& part, i64 row) const {
  Chunk chunk = source().chunk(part.tensor, part.chunk);
  if (part.step_items != 0 || !part.strides.empty() || !std::ranges::equal(part.sizes, chunk.sizes)) {
    check_row_major(source(), part.tensor, chunk, out);
    out.strides = part.strides;
  }
  out.offset += dtype_bytes(out.dtype, part.first_item + row * part.step_items);
  if (out.checksum) out.checksum->tensor = t;
  for (Checksum& sum : out.beneath) sum.tensor = t;
  return out;
}

}  // namespace mckpt::impl
