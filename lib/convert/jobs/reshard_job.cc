#include "convert/jobs/reshard_job.h"

#include <algorithm>
#include <unordered_map>

#include "convert/jobs/box_moves.h"
#include "convert/keys/tensor_regions.h"
#include "core/base/name_hash.h"

namespace mckpt {

ReshardJob::ReshardJob(const Store& source, const ChunkList& chunks, const DcpLayout* layout,
                       const Fused* fused, std::vector<CarriedRecord> records, ReadSums* sums)
    : FramedJob(layout),
      source_(source),
      chunks_(chunks),
      fused_(fused),
      sums_(sums),
      bytes_(source),
      records_(std::move(records)) {
  std::unordered_map<i32, std::size_t> task_of;
  for (i64 c = 0; c < chunks.size(); c++) {
    auto [at, fresh] = task_of.try_emplace(chunks.key(c), tasks_.size());
    if (fresh) {
      DType from = source.dtype(chunks.key(c)), to = chunks.dtype(c);
      try {
        check_conversion({from, to, to, 0, 0});
      } catch (Error& e) {
        throw e.default_tensor(source.name(chunks.key(c)));
      }
      tasks_.push_back({chunks.key(c), {}});
    }
    tasks_[at->second].chunks.push_back(static_cast<i32>(c));
  }
}

void ReshardJob::append_moves(i32 tensor, const ChunkList::Box& from, const ChunkList::Box& to, i32 region,
                              std::vector<Move>& out) const {
  i32 key = fused_ ? fused_->key_of[static_cast<std::size_t>(tensor)] : -1;
  if (key < 0) return append_box_moves({from.offsets, from.sizes}, {to.offsets, to.sizes}, region, out);
  i64 to_at = 0;
  for (const ItemRun& mine : fused_->to.runs(fused_->to[key], to.offsets, to.sizes)) {
    i64 from_at = 0;
    for (const ItemRun& theirs : fused_->from.runs(fused_->from[key], from.offsets, from.sizes)) {
      std::size_t first = out.size();
      if (mine.slot == theirs.slot) overlap(theirs, mine, out);
      for (std::size_t m = first; m < out.size(); m++)
        out[m].slot = region, out[m].from += from_at, out[m].to += to_at;
      from_at += theirs.items();
    }
    to_at += mine.items();
  }
}

CopyTask ReshardJob::make(i64 index, bool outline) const {
  if (index >= std::ssize(tasks_)) {
    const CarriedRecord& record = records_[static_cast<std::size_t>(index - std::ssize(tasks_))];
    if (sums_ && !outline) expect_record(*sums_, bytes_[record.from_file], record);
    return record.task();
  }
  const Task& t = tasks_[static_cast<std::size_t>(index)];
  DType to_type = chunks_.dtype(t.chunks[0]);
  CopyTask task{Plan(this), {source_.dtype(t.tensor), to_type, to_type, 0, 0}};

  struct SourceBox {
    Chunk chunk;
    i32 region;
  };
  std::vector<SourceBox> pieces;
  for (i64 c = 0; c < source_.chunk_count(t.tensor); c++) {
    Chunk chunk = source_.chunk(t.tensor, c);
    i64 items = Shape(chunk.sizes).items();
    if (chunk.replica || items == 0) continue;
    if (outline) {
      i32 bytes = static_cast<i32>(dtype_bytes(source_.dtype(t.tensor), 1));
      pieces.push_back({chunk, task.plan.add_source({0, c, items, bytes, t.tensor})});
      continue;
    }
    ChunkData data = source_.resolve(t.tensor, c);
    check_plain(source_, t.tensor, chunk, data);
    if (sums_ && data.checksum) sums_->expect(*data.checksum);
    i32 bytes = static_cast<i32>(dtype_bytes(data.dtype, 1));
    pieces.push_back({chunk, task.plan.add_source({data.file, data.offset, items, bytes, t.tensor})});
  }
  std::vector<Move> moves;
  for (i32 c : t.chunks) {
    ChunkList::Box box = chunks_.box(c);
    ChunkList::Place place = chunks_.place(c);
    i32 to = task.plan.add_destination({place.file, place.data_offset, Shape(box.sizes).items(),
                                        static_cast<i32>(dtype_bytes(place.dtype, 1)), c});
    moves.clear();
    for (const SourceBox& p : pieces)
      append_moves(t.tensor, {p.chunk.offsets, p.chunk.sizes}, box, p.region, moves);
    for (const Move& m : moves) task.plan.add(to, m);
  }
  task.plan.finish();
  return task;
}

i64 ReshardJob::task_bytes(i64 index) const {
  if (index >= std::ssize(tasks_))
    return records_[static_cast<std::size_t>(index - std::ssize(tasks_))].bytes;
  i64 bytes = 0;
  for (i32 c : tasks_[static_cast<std::size_t>(index)].chunks)
    bytes += dtype_bytes(chunks_.dtype(c), Shape(chunks_.box(c).sizes).items());
  return bytes;
}

NamedChunks::NamedChunks(const Store& store, const Store& other, const std::set<i64>& except)
    : StoreChunks(store) {
  NameMap<std::string_view, i32> by_name;
  for (i32 t = 0; t < other.tensor_count(); t++) by_name.emplace(other.name(t), t);
  for (i32 t = 0; t < store.tensor_count(); t++) {
    auto at = by_name.find(store.name(t));
    if (at != by_name.end() && !except.contains(t)) add(t, at->second);
  }
}

NamedChunks::NamedChunks(const Store& store, i32 tensor, i32 other) : StoreChunks(store) {
  add(tensor, other);
}

}  // namespace mckpt
