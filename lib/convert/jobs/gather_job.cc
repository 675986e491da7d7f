#include "convert/jobs/gather_job.h"

#include "core/items/convert_items.h"

namespace mckpt {
namespace {

using Runs = std::vector<ItemRun>;

// Appends the moves between two chunks, each walked in its own row-major order.
void append_common(const Runs& from, const Runs& to, i32 region, std::vector<Move>& out) {
  i64 to_at = 0;
  for (const ItemRun& mine : to) {
    i64 from_at = 0;
    for (const ItemRun& theirs : from) {
      std::size_t first = out.size();
      if (mine.slot == theirs.slot && mine.slot != kPaddingSlot) overlap(theirs, mine, out);
      for (std::size_t m = first; m < out.size(); m++)
        out[m].slot = region, out[m].from += from_at, out[m].to += to_at;
      from_at += theirs.items();
    }
    to_at += mine.items();
  }
}

void append_padding(const Runs& to, std::vector<Move>& out) {
  i64 at = 0;
  for (const ItemRun& run : to) {
    if (run.slot == kPaddingSlot) {
      Move zero = move_of(run, at);
      zero.kind = MoveKind::kZero;
      out.push_back(zero);
    }
    at += run.items();
  }
}

}  // namespace

GatherJob::GatherJob(const Store& checkpoint, Side from, Side to) : from_(from), to_(to), bytes_(checkpoint) {
  by_parameter_.resize(from.keys.parameters().size());
  for (i64 c = 0; c < from.chunks.size(); c++)
    by_parameter_[static_cast<std::size_t>(parameter_of(from, c))].push_back(static_cast<i32>(c));
  for (i64 c = 0; c < to.chunks.size(); c++)
    for (i32 source : sources_of(c)) {
      Conversion conversion{from.chunks.dtype(source), from.chunks.dtype(source), to.chunks.dtype(c), 0, 0};
      try {
        check_conversion(conversion);
      } catch (Error& e) {
        throw e.default_tensor(to.keys[to.chunks.key(c)].name);
      }
    }
}

std::span<const i32> GatherJob::sources_of(i64 chunk) const {
  return by_parameter_[static_cast<std::size_t>(parameter_of(to_, chunk))];
}

CopyTask GatherJob::task(i64 index) const {
  const CheckpointKey& key = to_.keys[to_.chunks.key(index)];
  ChunkList::Box box = to_.chunks.box(index);
  ChunkList::Place place = to_.chunks.place(index);
  CopyTask task{Plan(this), {}};
  i32 to =
      task.plan.add_destination({place.file, place.data_offset, Shape(box.sizes).items(),
                                 static_cast<i32>(dtype_bytes(place.dtype, 1)), static_cast<i32>(index)});
  Runs mine = to_.keys.runs(key, box.offsets, box.sizes);
  std::optional<DType> type;
  std::vector<Move> moves;
  append_padding(mine, moves);
  for (i32 c : sources_of(index)) {
    ChunkList::Box theirs = from_.chunks.box(c);
    std::size_t before = moves.size();
    append_common(from_.keys.runs(from_.keys[from_.chunks.key(c)], theirs.offsets, theirs.sizes), mine, -1,
                  moves);
    if (moves.size() == before) continue;
    ChunkList::Place stored = from_.chunks.place(c);
    if (type.value_or(stored.dtype) != stored.dtype)
      throw Error(Code::kBadCast, "parts of one tensor are stored with different types")
          .tensor(key.name)
          .expected(dtype_name(*type))
          .found(dtype_name(stored.dtype));
    type = stored.dtype;
    i32 region = task.plan.add_source({stored.file, stored.data_offset, Shape(theirs.sizes).items(),
                                       static_cast<i32>(dtype_bytes(stored.dtype, 1)), c});
    for (std::size_t m = before; m < moves.size(); m++) moves[m].slot = region;
  }
  for (const Move& move : moves) task.plan.add(to, move);
  task.plan.finish();
  task.conversion = {type.value_or(place.dtype), type.value_or(place.dtype), place.dtype, 0, 0};
  return task;
}

i64 GatherJob::task_bytes(i64 index) const {
  return dtype_bytes(to_.chunks.dtype(index), Shape(to_.chunks.box(index).sizes).items());
}

}  // namespace mckpt
