// For each chunk of the source, the pieces of its tensor are intersected with the chunk; each intersection
// becomes a chunk of the result, at the end of the file of the same rank.
#include "convert/layers/moved_chunks.h"
#include "convert/jobs/chunk_jobs.h"
#include "convert/layers/layer_migration.h"
#include "core/base/error.h"
#include "io/dcp/keys/key.h"
#include "io/store/store.h"

#include <algorithm>

namespace mckpt::impl {
namespace {

constexpr i64 kMostRanks = i64{1} << 20;

// The part of a chunk that belongs to a piece: its box in the source's tensor (from, sizes) and in the
// result's (to, to_sizes), which may have one dimension more or less.
struct PieceBox {
  std::vector<i64> from, to, sizes, to_sizes;
};

// Nothing if the chunk contains nothing of the piece. pre: a chunk contains all rows of a piece that is a
// range of rows, as MixerShapes::parts() ensures.
std::optional<PieceBox> piece_box(const MovedPiece& piece, const ChunkList::Box& chunk) {
  PieceBox box{
      {chunk.offsets.begin(), chunk.offsets.end()}, {}, {chunk.sizes.begin(), chunk.sizes.end()}, {}};
  if (piece.from_layer >= 0) {
    if (piece.from_layer < box.from[0] || piece.from_layer >= box.from[0] + box.sizes[0]) return std::nullopt;
    box.from[0] = piece.from_layer, box.sizes[0] = 1;
  }
  if (piece.rows >= 0) box.from[0] = piece.first_row, box.sizes[0] = piece.rows;
  box.to = box.from, box.to_sizes = box.sizes;
  if (piece.rows >= 0) box.to[0] = 0;
  if (piece.from_layer >= 0) box.to.erase(box.to.begin()), box.to_sizes.erase(box.to_sizes.begin());
  if (piece.to_layer >= 0)
    box.to.insert(box.to.begin(), piece.to_layer), box.to_sizes.insert(box.to_sizes.begin(), 1);
  return box;
}

}  // namespace

i64 rank_of_file(const Store& store, i32 file) {
  if (file < 0) return 0;
  std::string_view path = store.files()[file].path;
  auto rank = numbered(path.substr(path.rfind('/') + 1), "__");
  return rank && rank->before == "__" && rank->after.starts_with('_') ? rank->number : 0;
}

i64 ranks_of_files(const Store& source) {
  i64 ranks = 1;
  for (i32 f = 0; f < static_cast<i32>(source.files().size()); f++)
    ranks = std::max(ranks, rank_of_file(source, f) + 1);
  if (ranks > kMostRanks)
    throw Error(Code::kBadMetadata, "the name of a file has the number of a rank that no training run has")
        .file(source.root())
        .expected(cat("at most ", kMostRanks, " ranks"))
        .found(cat("rank ", ranks - 1));
  return ranks;
}

void MovedChunks::Sources::add_all(const std::vector<bool>& used) {
  std::vector<i64> rank;
  for (i32 f = 0; f < static_cast<i32>(store().files().size()); f++) rank.push_back(rank_of_file(store(), f));
  std::vector<std::tuple<i64, i32, i64, Entry>> placed;  // by rank, file, offset
  for (i32 t = 0; t < static_cast<i32>(used.size()); t++)
    for (i32 c = 0; used[t] && c < static_cast<i32>(store().chunk_count(t)); c++)
      if (Chunk chunk = store().chunk(t, c); !chunk.replica)
        placed.emplace_back(chunk.file < 0 ? 0 : rank[chunk.file], chunk.file, chunk.record_offset,
                            Entry{t, t, c});
  std::ranges::stable_sort(
      placed, {}, [](const auto& p) { return std::tuple(std::get<0>(p), std::get<1>(p), std::get<2>(p)); });
  for (const auto& p : placed) add(std::get<Entry>(p));
}

MovedChunks::MovedChunks(const Store& source, const LayerMigration& migration, DcpLayout& layout, bool nested)
    : store_(source), layout_(layout), sources_(source) {
  struct Use {
    i32 key;
    const MovedPiece* piece;
  };
  std::vector<std::vector<Use>> uses(static_cast<std::size_t>(source.tensor_count()));
  for (const MovedTensor& t : migration.tensors) {
    DcpName name{t.name, nested ? nesting_dots(t.name) : std::vector<i32>()};
    i32 key = layout.add_key({std::move(name), t.dtype, t.shape});
    for (const MovedPiece& piece : t.pieces) uses[piece.tensor].push_back({key, &piece});
  }
  std::vector<bool> used;
  for (const std::vector<Use>& u : uses) used.push_back(!u.empty());
  sources_.add_all(used);
  for (i32 c = 0; c < static_cast<i32>(sources_.size()); c++)
    for (const Use& use : uses[sources_.key(c)]) add_target(c, use.key, *use.piece);
}

void MovedChunks::add_target(i32 source, i32 key, const MovedPiece& piece) {
  std::optional<PieceBox> box = piece_box(piece, sources_.box(source));
  if (!box) return;
  auto [key_, tensor, chunk] = sources_.entry(source);
  i32 rank = static_cast<i32>(rank_of_file(store_, store_.chunk(tensor, chunk).file));
  layout_.add_chunk(key, rank, box->to, box->to_sizes);
  source_of_.push_back(source);
  first_.push_back(std::ssize(numbers_));
  numbers_.insert(numbers_.end(), box->from.begin(), box->from.end());
  numbers_.insert(numbers_.end(), box->sizes.begin(), box->sizes.end());
}

ChunkJob MovedChunks::job(std::vector<CarriedRecord> records) const {
  return pairs_job(sources_, files_of(store_), *this, source_of_, std::move(records));
}

ChunkList::Box MovedChunks::box(i64 c) const {
  std::size_t rank = dims(c).size();
  std::span<const i64> numbers = std::span(numbers_).subspan(static_cast<std::size_t>(first_[c]), 2 * rank);
  return {numbers.first(rank), numbers.subspan(rank)};
}

ChunkList::Place MovedChunks::place(i64 c) const {
  DcpLayout::Chunk chunk = layout_.chunk(c);
  return {chunk.rank, chunk.data_offset(), dtype(c)};
}

}  // namespace mckpt::impl
