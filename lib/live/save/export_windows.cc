// Cuts the tasks of an export job into batches, and the moves of a task at the borders of a window. In the
// plan of an export, the "file" of a source region is the number of the rank that has the chunk.
#include "live/save/export_windows.h"

#include <algorithm>

#include "convert/jobs/chunk_job.h"
#include "live/device/device.h"

namespace mckpt::impl {

std::vector<std::vector<ExportUnit>> export_batches(const ChunkJob& plan, int ranks, i64 most_bytes) {
  i64 total = 0;
  for (i64 t = 0; t < plan.task_count(); t++) total += plan.task_bytes(t);
  i64 bytes = std::clamp<i64>(ceil_div(total, ranks), 1, std::max<i64>(most_bytes, 64 << 10));
  std::vector<std::vector<ExportUnit>> batches;
  i64 room = 0;
  for (i64 t = 0; t < plan.task_count(); t++) {
    i64 item = dtype_bytes(plan.cast_of(t).to, 1), items = plan.task_bytes(t) / item;
    for (i64 begin = 0; begin < items;) {
      if (room < item) batches.emplace_back(), room = std::max(bytes, item);
      i64 end = std::min(items, begin + room / item);
      batches.back().push_back({t, {begin, end}});
      room -= (end - begin) * item;
      begin = end;
    }
  }
  return batches;
}

i64 widest_ratio(const ChunkJob& plan) {
  i64 ratio = 1;
  for (i64 t = 0; t < plan.task_count(); t++) {
    ItemCast c = plan.cast_of(t);
    ratio = std::max(ratio, ceil_div(dtype_bytes(c.from, 1), dtype_bytes(c.to, 1)));
  }
  return ratio;
}

// The strides on the packed side fit items one after the other.
ItemCopy ExportPart::packing(const u8* chunk_bytes, u8* sent, DType type) const {
  ItemCopy copy{
      chunk_bytes + dtype_bytes(type, move.from), sent, move.length, move.inner, move.outer, no_cast(type)};
  copy.inner.to_stride = move.length;
  copy.outer.to_stride = move.length * move.inner.count;
  return copy;
}

ItemCopy ExportPart::unpacking(const u8* sent, u8* first_item, const ItemCast& cast) const {
  ItemCopy copy{sent, first_item + dtype_bytes(cast.to, move.to), move.length, move.inner, move.outer, cast};
  copy.inner.from_stride = move.length;
  copy.outer.from_stride = move.length * move.inner.count;
  return copy;
}

Move ExportPart::within_destination() const {
  Move m = move;
  m.from = m.to;
  m.inner.from_stride = m.inner.to_stride;
  m.outer.from_stride = m.outer.to_stride;
  return m;
}

const CopyTask& ExportTask::go_to(i64 index) {
  if (index == index_) return task_;
  task_ = plan_.task(index), index_ = index;
  own_.clear();
  for (const PlannedMove& m : task_.plan.moves())
    if (task_.plan.source(m.move.slot).file == rank_) own_.push_back(m);
  return task_;
}

// The parts of the moves that write items of the window.
std::vector<ExportPart> ExportTask::clipped(std::span<const PlannedMove> planned, ItemRange window) const {
  std::vector<ExportPart> parts;
  std::vector<Move> moves;
  for (const PlannedMove& p : planned) {
    const Region& from = task_.plan.source(p.move.slot);
    moves.clear();
    clip_destination(p.move, window, moves);
    for (const Move& m : moves) parts.push_back({m, from.tensor, from.file});
  }
  return parts;
}

}  // namespace mckpt::impl
