#include "convert/layers/migration_job.h"

#include "convert/jobs/box_moves.h"
#include "convert/keys/tensor_regions.h"

namespace mckpt {
namespace {

constexpr i64 kMostRanks = i64{1} << 20;

// The piece's share of a chunk, in the source's coordinates and in the result's.
struct PieceBox {
  std::vector<i64> from, to, sizes, to_sizes;
};

// Nothing where the chunk has no share of it.
std::optional<PieceBox> piece_box(const MovedPiece& piece, const Chunk& chunk) {
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

i64 rank_of_file(const Store& store, i32 file) {
  if (file < 0) return 0;
  std::string_view path = store.files()[static_cast<std::size_t>(file)].path;
  auto rank = numbered(path.substr(path.rfind('/') + 1), "__");
  return rank && rank->before == "__" && rank->after.starts_with('_') ? rank->number : 0;
}

}  // namespace

i64 MigrationJob::ranks_of(const Store& source) {
  i64 ranks = 1;
  for (i32 f = 0; f < static_cast<i32>(source.files().size()); f++)
    ranks = std::max(ranks, rank_of_file(source, f) + 1);
  if (ranks > kMostRanks)
    throw Error(Code::kBadMetadata, "a file is named after a rank that no run has")
        .file(source.root())
        .expected(cat("at most ", kMostRanks, " ranks"))
        .found(cat("rank ", ranks - 1));
  return ranks;
}

i32 MigrationJob::rank_of(const Store& source, const Object& object) {
  return static_cast<i32>(rank_of_file(source, object.file));
}

MigrationJob::MigrationJob(const Store& source, const LayerMigration& migration, DcpLayout& layout,
                           bool nested, ReadSums* sums)
    : FramedJob(&layout), source_(source), layout_(layout), nested_(nested), sums_(sums), bytes_(source) {
  uses_.resize(static_cast<std::size_t>(source.tensor_count()));
  for (const MovedTensor& t : migration.tensors) {
    i32 key =
        layout.add_key({{t.name, nested ? nesting_dots(t.name) : std::vector<i32>()}, t.dtype, t.shape});
    for (i32 p = 0; p < static_cast<i32>(t.pieces.size()); p++)
      uses_[static_cast<std::size_t>(t.pieces[static_cast<std::size_t>(p)].tensor)].emplace_back(key, p);
  }
  list_chunks();
  for (SourceChunk& chunk : chunks_) {
    chunk.first_target = layout.chunk_count();
    add_targets(chunk, migration);
  }
}

// Those that something becomes of, in the order of the ranks and of their files.
void MigrationJob::list_chunks() {
  struct Place {
    i32 file;
    i64 offset;
  };
  std::vector<std::pair<Place, SourceChunk>> placed;
  for (i32 t = 0; t < static_cast<i32>(source_.tensor_count()); t++)
    for (i32 c = 0; c < static_cast<i32>(source_.chunk_count(t)); c++) {
      Chunk chunk = source_.chunk(t, c);
      if (!chunk.replica && !uses_[static_cast<std::size_t>(t)].empty())
        placed.push_back({{chunk.file, chunk.record_offset}, {t, c}});
    }
  std::vector<i64> rank;
  for (i32 f = 0; f < static_cast<i32>(source_.files().size()); f++) rank.push_back(rank_of_file(source_, f));
  auto rank_of_place = [&](const Place& p) {
    return p.file < 0 ? 0 : rank[static_cast<std::size_t>(p.file)];
  };
  std::stable_sort(placed.begin(), placed.end(), [&](const auto& a, const auto& b) {
    return std::tuple(rank_of_place(a.first), a.first.file, a.first.offset) <
           std::tuple(rank_of_place(b.first), b.first.file, b.first.offset);
  });
  for (const auto& [place, chunk] : placed) chunks_.push_back(chunk);
}

void MigrationJob::add_targets(const SourceChunk& source, const LayerMigration& migration) {
  Chunk chunk = source_.chunk(source.tensor, source.chunk);
  i32 rank = static_cast<i32>(rank_of_file(source_, chunk.file));
  for (auto [key, p] : uses_[static_cast<std::size_t>(source.tensor)]) {
    const MovedPiece& piece =
        migration.tensors[static_cast<std::size_t>(key)].pieces[static_cast<std::size_t>(p)];
    std::optional<PieceBox> box = piece_box(piece, chunk);
    if (!box) continue;
    layout_.add_chunk(key, rank, box->to, box->to_sizes);
    piece_of_.push_back(piece);
  }
}

void MigrationJob::add_record(const MovedObject& object) {
  const Object& o = source_.objects()[static_cast<std::size_t>(object.object)];
  if (o.file < 0) throw Error(Code::kRecordMissing, "the object has no bytes").tensor(o.name);
  i32 rank = rank_of(source_, o);
  DcpName name{object.name, nested_ ? nesting_dots(object.name) : std::vector<i32>()};
  i64 to = layout_.add_object_record(std::move(name), rank, o.record_bytes);
  records_.push_back({o.file, rank, o.record_offset, to, o.record_bytes, o.name});
}

i64 MigrationJob::end_target(std::size_t chunk) const {
  return chunk + 1 < chunks_.size() ? chunks_[chunk + 1].first_target : layout_.chunk_count();
}

CopyTask MigrationJob::make(i64 index, bool outline) const {
  std::size_t i = static_cast<std::size_t>(index);
  if (i >= chunks_.size()) {
    const CarriedRecord& record = records_[i - chunks_.size()];
    if (sums_ && !outline) expect_record(*sums_, bytes_[record.from_file], record);
    return record.task();
  }
  const SourceChunk& source = chunks_[i];
  Chunk chunk = source_.chunk(source.tensor, source.chunk);
  ChunkData data{.file = 0, .offset = source.chunk, .dtype = source_.dtype(source.tensor)};
  if (!outline) {
    data = source_.resolve(source.tensor, source.chunk);
    check_plain(source_, source.tensor, chunk, data);
    if (sums_ && data.checksum) sums_->expect(*data.checksum);
  }

  CopyTask task{Plan(this), no_conversion(data.dtype)};
  i32 bytes = static_cast<i32>(dtype_bytes(data.dtype, 1));
  i32 from = task.plan.add_source({data.file, data.offset, Shape(chunk.sizes).items(), bytes, source.tensor});
  std::vector<Move> moves;
  for (i64 c = source.first_target; c < end_target(i); c++) {
    DcpLayout::Chunk target = layout_.chunk(c);
    i64 items = Shape(target.sizes).items();
    if (items == 0) continue;  // the layout writes it
    i32 to =
        task.plan.add_destination({target.rank, target.data_offset(), items, bytes, static_cast<i32>(c)});
    std::optional<PieceBox> box = piece_box(piece_of_[static_cast<std::size_t>(c)], chunk);
    moves.clear();
    append_box_moves({chunk.offsets, chunk.sizes}, {box->from, box->sizes}, from, moves);
    for (const Move& m : moves) task.plan.add(to, m);
  }
  task.plan.finish();
  return task;
}

i64 MigrationJob::task_bytes(i64 index) const {
  std::size_t i = static_cast<std::size_t>(index);
  if (i >= chunks_.size()) return records_[i - chunks_.size()].bytes;
  i64 bytes = 0;
  for (i64 c = chunks_[i].first_target; c < end_target(i); c++)
    bytes += layout_.chunk(c).frame->record_bytes();
  return bytes;
}

}  // namespace mckpt
