// How one task is planned:
//
//   1  list the runs of all its sources, sorted by slot      q: [0+256] of chunk 12, [256+256] of chunk 13     k: ...
//   2  walk the runs of each chunk that the task writes      q: [128+256]
//   3  overlap each with the sources' runs of that slot      [128+256] takes 128 items of each chunk: 2 moves
//
// Two boxes of one slot need no runs: append_box_moves() finds their moves by arithmetic. A source gets its
// place in a file when the first move reads it, so that headers of unused records are never read. A chunk of
// items smaller than a byte is copied as its bytes: an item of it need not begin with a byte. All that counts
// items, runs and rows that only one side has, refuses such a chunk.
#include "convert/jobs/chunk_job.h"

#include <algorithm>

#include "convert/jobs/box_moves.h"
#include "convert/jobs/readable_chunks.h"
#include "core/base/error.h"
#include "io/dcp/write/record.h"
#include "mappings/model/parameter.h"
#include "mappings/rule.h"

namespace mckpt::impl {
namespace {

// Whether the run is one stretch of items. Overlaps with a flat run need no search, and nearly all runs are
// flat.
bool is_flat(const ItemRun& run) { return run.inner.count == 1 && run.outer.count == 1; }

bool covers(const ItemRun& flat, const ItemRun& run) {
  return is_flat(flat) && flat.begin <= run.begin && run.end() <= flat.begin + flat.length;
}

// The move that copies the items of `run` out of a stretch that contains them. The first item of the stretch
// is stored at `flat_at`, the first item of the run at `run_at`.
Move out_of(const ItemRun& flat, i64 flat_at, const ItemRun& run, i64 run_at) {
  Move m = move_of(run, run_at);
  m.from += flat_at - flat.begin;
  return m;
}

// Appends the moves that copy the items that both runs contain. `from_at` and `to_at` are the places at which
// the first items of the runs are stored. pre: both runs are of one slot.
void append_common(const ItemRun& from, i64 from_at, const ItemRun& to, i64 to_at, std::vector<Move>& out) {
  if (covers(from, to)) return out.push_back(out_of(from, from_at, to, to_at));
  if (covers(to, from)) return out.push_back(reversed(out_of(to, to_at, from, from_at)));
  std::size_t first = out.size();
  overlap(from, to, out);
  for (std::size_t m = first; m < out.size(); m++) out[m].from += from_at, out[m].to += to_at;
}

}  // namespace

// Plans one task, once: make() consumes the maker.
class ChunkJob::TaskMaker {
 public:
  TaskMaker(const ChunkJob& job, i64 index, bool outline)
      : from_(job.from_),
        to_(job.to_),
        targets_(job.targets_of(index)),
        sources_(job.tasks_.group[index] < 0 ? std::span<const i32>()
                                             : job.tasks_.sources[job.tasks_.group[index]]),
        outline_(outline),
        resized_(!job.tasks_.resized.empty() && job.tasks_.resized[job.tasks_.group[index]]),
        stored_(job.tasks_.cast[index].from),
        region_(sources_.size(), -1),
        task_{Plan(&job), is_of_bytes() ? no_cast(DType::kU8) : job.tasks_.cast[index]} {}

  CopyTask make() {
    bool boxes =
        !targets_.empty() && !sources_.empty() && from_.is_box(sources_[0]) && to_.is_box(targets_[0]);
    if (!boxes) list_runs();
    for (i32 target : targets_) {
      ChunkList::Box box = to_.chunks.box(target);
      i64 items = Shape(box.sizes).items();
      if (items == 0) continue;  // an empty box: nothing is written
      ChunkList::Place place = to_.chunks.place(target);
      i32 to = task_.plan.add_destination(
          {place.file, place.data_offset, units(items), unit_bytes(place.dtype), target});
      boxes ? add_boxes(to, box) : add_runs(to, target);
    }
    if (boxes && resized_ && outline_ &&
        std::ranges::any_of(targets_, [&](i32 target) { return writes_first_item(target); }))
      list_rows_left();
    task_.plan.finish();
    return std::move(task_);
  }

 private:
  // Whether the items of the chunks are smaller than a byte, so that the plan counts bytes.
  bool is_of_bytes() const { return dtype_info(stored_).bits % 8 != 0; }
  i64 units(i64 items) const { return is_of_bytes() ? dtype_bytes(stored_, items) : items; }
  i32 unit_bytes(DType dtype) const { return is_of_bytes() ? 1 : static_cast<i32>(dtype_bytes(dtype, 1)); }

  // A run of a source, and the position of its first item in the chunk's own order.
  struct SourceRun {
    ItemRun run;
    i64 at;
    i32 source;  // in sources_
  };

  void list_runs() {
    for (i32 s = 0; s < static_cast<i32>(sources_.size()); s++) {
      i64 at = 0;
      for (const ItemRun& run : from_.runs(sources_[s])) {
        if (run.slot != kPaddingSlot)
          runs_.push_back({run, at, s});
        else if (outline_ && answers_for_padding(sources_[s]))
          task_.unwanted.push_back({region(s), at, run.items(), {}, {}});
        at += run.items();
      }
    }
    auto slot = [](const SourceRun& r) { return r.run.slot; };
    if (!std::ranges::is_sorted(runs_, {}, slot)) std::ranges::stable_sort(runs_, {}, slot);
  }

  // Whether the target has item 0 of its tensor, and is not a copy: of the tasks that write boxes of one, one
  // has it.
  bool writes_first_item(i32 target) const {
    auto is_zero = [](i64 offset) { return offset == 0; };
    return to_.chunks.items(target) > 0 && !to_.chunks.copy(target) &&
           std::ranges::all_of(to_.chunks.box(target).offsets, is_zero);
  }

  // Padding belongs to no slot, so exactly one task must list it as unwanted: the one that writes item 0 of
  // the parameter, or item 0 of the parameter's first tensor.
  bool answers_for_padding(i32 source) const {
    return std::ranges::any_of(targets_, [&](i32 target) {
      if (!writes_first_item(target)) return false;
      if (!to_.is_box(target)) return to_.key(target).first_row == 0;
      return to_.slot(target) == from_.parameter(source).sources[0] && !to_.repeats(target);
    });
  }

  void add_boxes(i32 to, const ChunkList::Box& box) {
    for (i32 s = 0; s < static_cast<i32>(sources_.size()); s++) {
      ChunkList::Box from = from_.chunks.box(sources_[s]);
      moves_.clear();
      append_box_moves({from.offsets, from.sizes}, {box.offsets, box.sizes}, 0, moves_);
      if (is_of_bytes() && !moves_.empty()) take_bytes(s, from, box);
      add_moves(to, s);
    }
    if (resized_) add_new_rows(to, box);
  }

  // pre: items are smaller than a byte. Moves of them cannot be counted in bytes.
  [[noreturn]] void refuse_moves_of_items(const std::string& name) const {
    throw Error(Code::kUnsupportedTensor, "elements smaller than a byte are in other pieces on the two sides")
        .tensor(name)
        .expected("the same boxes")
        .found(dtype_name(stored_));
  }

  // One move of all bytes takes the place of the moves of items. Throws kUnsupportedTensor for boxes that
  // differ: their items do not begin with the same bits.
  void take_bytes(i32 source, const ChunkList::Box& from, const ChunkList::Box& box) {
    if (!std::ranges::equal(from.offsets, box.offsets) || !std::ranges::equal(from.sizes, box.sizes))
      refuse_moves_of_items(from_.chunks.name(sources_[source]));
    moves_.clear();
    moves_.push_back(move_of({0, 0, units(Shape(box.sizes).items()), {}, {}}, 0));
  }

  // The part of the box that has the rows from `first` on, as items of the box. pre: the box is whole rows
  static ItemRange rows_from(i64 first, const ChunkList::Box& box) {
    i64 items = Shape(box.sizes).items();
    i64 rows = std::clamp<i64>(first - box.offsets[0], 0, box.sizes[0]);
    return {box.sizes[0] == 0 ? 0 : items / box.sizes[0] * rows, items};
  }

  // Rows behind the last one of the source are zeros.
  void add_new_rows(i32 to, const ChunkList::Box& box) {
    ItemRange fresh = rows_from(from_.chunks.dims(sources_[0])[0], box);
    if (fresh.begin == fresh.end) return;
    if (is_of_bytes()) refuse_moves_of_items(to_.chunks.name(targets_[0]));
    Move zero = move_of({kPaddingSlot, 0, fresh.end - fresh.begin, {}, {}}, fresh.begin);
    zero.kind = MoveKind::kZero;
    task_.plan.add(to, zero);
  }

  // Rows behind the last one of the result are not wanted.
  void list_rows_left() {
    i64 rows = to_.chunks.dims(targets_[0])[0];
    for (i32 s = 0; s < static_cast<i32>(sources_.size()); s++) {
      ItemRange left = rows_from(rows, from_.chunks.box(sources_[s]));
      if (left.begin == left.end) continue;
      if (is_of_bytes()) refuse_moves_of_items(from_.chunks.name(sources_[s]));
      task_.unwanted.push_back({region(s), left.begin, left.end - left.begin, {}, {}});
    }
  }

  void add_runs(i32 to, i32 target) {
    if (is_of_bytes()) refuse_moves_of_items(to_.chunks.name(target));
    // The tensors of a model have each item once; a chunk of a checkpoint may have copies of its own.
    bool from_model = !sources_.empty() && from_.is_box(sources_[0]), to_model = to_.is_box(target);
    i64 at = 0;
    for (const ItemRun& run : to_.runs(target)) {
      if (run.slot == kPaddingSlot) {
        Move zero = move_of(run, at);
        zero.kind = MoveKind::kZero;
        task_.plan.add(to, zero);
      } else if (is_copy(run.slot) && from_model) {
        add_slot(to, run, at, copied_slot(run.slot), MoveKind::kAgain);
      } else {
        add_slot(to, run, at, run.slot, MoveKind::kCopy);
        if (to_model && !to_.repeats(target)) add_slot(to, run, at, copy_of(run.slot), MoveKind::kEqual);
      }
      at += run.items();
    }
  }

  // Adds the moves between the run, which begins at item `at` of the destination, and the sources' runs of a
  // slot.
  void add_slot(i32 to, const ItemRun& run, i64 at, i32 from_slot, MoveKind kind) {
    auto slot = [](const SourceRun& r) { return r.run.slot; };
    // clang 14 has no ranges::equal_range.
    auto source = std::ranges::lower_bound(runs_, from_slot, {}, slot);
    for (; source != runs_.end() && source->run.slot == from_slot; ++source) {
      moves_.clear();
      append_common(source->run, source->at, run, at, moves_);
      add_moves(to, source->source, kind);
    }
  }

  void add_moves(i32 to, i32 source, MoveKind kind = MoveKind::kCopy) {
    for (Move& move : moves_) {
      move.kind = kind;
      move.slot = region(source);
      task_.plan.add(to, move);
    }
  }

  // The region of the plan for a source. The first call places the source in its file and takes the record's
  // checksum along. Throws kBadCast if the source is not stored in the type that the task casts from.
  i32 region(i32 source) {
    if (region_[source] >= 0) return region_[source];
    i32 chunk = sources_[source];
    ChunkList::Place place = outline_ ? from_.chunks.numbered_place(chunk) : from_.chunks.place(chunk);
    if (place.dtype != stored_)
      throw Error(Code::kBadCast, "parts of one tensor are stored with different types")
          .tensor(to_.chunks.name(targets_[0]))
          .expected(dtype_name(stored_))
          .found(dtype_name(place.dtype));
    std::ranges::move(place.sums, std::back_inserter(task_.sums));
    return region_[source] =
               task_.plan.add_source({place.file, place.data_offset, units(from_.chunks.items(chunk)),
                                      unit_bytes(place.dtype), chunk});
  }

  const ChunkSide &from_, &to_;
  std::span<const i32> targets_, sources_;
  bool outline_;
  bool resized_;                 // the number of rows may differ between the two sides
  DType stored_;                 // the type of the sources
  std::vector<i32> region_;      // by source: its region in the plan; -1 until a move reads it
  std::vector<SourceRun> runs_;  // by slot
  std::vector<Move> moves_;
  CopyTask task_;
};

ChunkJob::ChunkJob(Parts parts)
    : from_(parts.from),
      to_(parts.to),
      tasks_(std::move(parts.tasks)),
      files_(std::move(parts.files)),
      records_(std::move(parts.records)),
      owned_(std::move(parts.owned)),
      readable_(std::move(parts.readable)) {
  task_bytes_.reserve(static_cast<std::size_t>(task_count()));
  for (i64 t = 0; t < tasks_.targets.size(); t++) {
    i64 items = 0;
    for (i32 target : targets_of(t)) items += to_.chunks.items(target);
    task_bytes_.push_back(dtype_bytes(tasks_.cast[t].to, items));
  }
  for (const CarriedRecord& r : records_) task_bytes_.push_back(r.bytes);
}

CopyTask ChunkJob::make(i64 index, bool outline) const {
  if (index < tasks_.targets.size()) return TaskMaker(*this, index, outline).make();
  const CarriedRecord& record = records_[index - tasks_.targets.size()];
  CopyTask task = record.task();
  if (!outline) task.sums = sums_of_record(source(record.from_file), record);
  return task;
}

const ByteSource& ChunkJob::source(i32 file) const {
  return readable_ ? readable_->source(file) : files_(file);
}

void ChunkJob::prepare(int threads, i64 memory_bytes) const {
  if (readable_) readable_->prepare(read_memory(threads, memory_bytes));
}

void ChunkJob::refuse_unlike(const Region& region, i64 item) const {
  throw Error(Code::kUnaccounted,
              "the model has one tensor for keys and values, but the checkpoint has different ones")
      .tensor(tensor_of(region))
      .expected("rows of values that are those of the keys, as they were when the checkpoint was made")
      .found(cat("another value for item ", item))
      .help("values that were trained apart from the keys have no place in a model of this family");
}

Frame ChunkJob::frame(const Region& region) const {
  const DcpTensorFrame* frame = frame_of(region);
  return frame ? Frame{std::ssize(frame->head()), frame->tail_bytes()} : Frame{};
}

void ChunkJob::write_head(const Region& region, std::span<u8> to) const {
  std::ranges::copy(frame_of(region)->head(), to.begin());
}

void ChunkJob::write_tail(const Region& region, u32 crc32, std::span<u8> to) const {
  frame_of(region)->write_tail(crc32, to);
}

}  // namespace mckpt::impl
