#include "convert/jobs/export_job.h"

#include <algorithm>

namespace mckpt {
namespace {

// The same walk the other way round.
Move reversed(const Move& m) {
  Move r = m;
  r.from = m.to, r.to = m.from;
  for (auto [loop, back] : {std::pair(&m.inner, &r.inner), std::pair(&m.outer, &r.outer)})
    *back = {loop->to_stride, loop->from_stride, loop->count};
  return r;
}

}  // namespace

ExportPlan::ExportPlan(const KeyTable& keys, const ChunkList& chunks, const TensorPlaces& places,
                       ReadSums* sums)
    : keys_(keys), chunks_(chunks), places_(places), sums_(sums) {
  list_chunks();
  const SourceTable& tensors = keys.map().sources();
  readers_.resize(static_cast<std::size_t>(tensors.size()));
  for (i32 p = 0; p < static_cast<i32>(keys.parameters().size()); p++)
    for (i32 t : keys.parameters()[static_cast<std::size_t>(p)].sources)
      if (t >= 0) readers_[static_cast<std::size_t>(t)].push_back(p);
  std::vector<i32> content(static_cast<std::size_t>(tensors.size()));
  for (i32 t = 0; t < tensors.size(); t++) content[static_cast<std::size_t>(t)] = t;
  for (const UnreadTensor& u : keys.map().unread())
    if (u.of >= 0) content[static_cast<std::size_t>(u.tensor)] = u.of;
  for (i32 t = 0; t < tensors.size(); t++)
    if (places.tensors[static_cast<std::size_t>(t)].file >= 0)
      add_task(t, content[static_cast<std::size_t>(t)]);
  // Tasks that follow each other write next to each other.
  std::ranges::stable_sort(tasks_, {}, [&](const Task& task) {
    const TensorPlaces::Place& place = places.tensors[static_cast<std::size_t>(task.tensor)];
    return std::pair(place.file, place.offset);
  });
}

void ExportPlan::list_chunks() {
  begin_.assign(keys_.parameters().size() + 1, 0);
  auto parameter_of = [&](i64 c) { return static_cast<std::size_t>(keys_[chunks_.key(c)].parameter); };
  for (i64 c = 0; c < chunks_.size(); c++) begin_[parameter_of(c) + 1]++;
  for (std::size_t p = 1; p < begin_.size(); p++) begin_[p] += begin_[p - 1];
  std::vector<i64> next(begin_.begin(), begin_.end());
  by_parameter_.resize(static_cast<std::size_t>(chunks_.size()));
  for (i64 c = 0; c < chunks_.size(); c++)
    by_parameter_[static_cast<std::size_t>(next[parameter_of(c)]++)] = static_cast<i32>(c);
}

std::span<const i32> ExportPlan::chunks_of(i32 parameter) const {
  i64 begin = begin_[static_cast<std::size_t>(parameter)],
      end = begin_[static_cast<std::size_t>(parameter) + 1];
  return std::span(by_parameter_)
      .subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
}

void ExportPlan::add_task(i32 tensor, i32 content) {
  const TensorPlaces::Place& place = places_.tensors[static_cast<std::size_t>(tensor)];
  std::string_view name = keys_.map().sources()[tensor].name;
  std::optional<Conversion> conversion;
  for (i32 p : readers_[static_cast<std::size_t>(content)])
    for (i32 c : chunks_of(p)) {
      DType stored = chunks_.dtype(c);
      float addend = keys_.parameters()[static_cast<std::size_t>(p)].holding->addend;
      Conversion mine{stored, stored, place.dtype, 0, -addend};
      if (!conversion) conversion = mine;
      if (*conversion == mine) continue;
      throw Error(Code::kBadCast, "parts of one tensor are stored with different types")
          .tensor(name)
          .expected(dtype_name(conversion->from))
          .found(dtype_name(stored));
    }
  if (!conversion)
    throw Error(Code::kUnaccounted, "nothing in the checkpoint holds this tensor").tensor(name);
  try {
    check_conversion(*conversion);
  } catch (Error& e) {
    throw e.default_tensor(name);
  }
  tasks_.push_back({tensor, content, *conversion});
}

i64 ExportPlan::task_bytes(i64 index) const {
  const TensorPlaces::Place& place = places_.tensors[static_cast<std::size_t>(tensor_of_task(index))];
  return dtype_bytes(place.dtype, place.shape.items());
}

CopyTask ExportPlan::make(i64 index, bool outline) const {
  const Task& t = tasks_[static_cast<std::size_t>(index)];
  const TensorPlaces::Place& place = places_.tensors[static_cast<std::size_t>(t.tensor)];
  CopyTask task{Plan(this), t.conversion};
  i32 to_bytes = static_cast<i32>(dtype_bytes(place.dtype, 1));
  i32 to = task.plan.add_destination({place.file, place.offset, place.shape.items(), to_bytes, t.tensor});
  for (i32 p : readers_[static_cast<std::size_t>(t.content)]) {
    // Padding is of no tensor; the task of the first one answers for it.
    bool first = t.tensor == keys_.parameters()[static_cast<std::size_t>(p)].sources[0];
    for (i32 c : chunks_of(p)) {
      ChunkList::Box box = chunks_.box(c);
      i32 from = -1;
      auto source = [&] {
        if (from >= 0) return from;
        ChunkList::Place stored = outline ? chunks_.numbered_place(c) : chunks_.place(c);
        if (sums_ && stored.checksum) sums_->expect(*stored.checksum);
        return from = task.plan.add_source({stored.file, stored.data_offset, Shape(box.sizes).items(),
                                            static_cast<i32>(dtype_bytes(stored.dtype, 1)), c});
      };
      i64 at = 0;
      for (const ItemRun& run : keys_.runs(keys_[chunks_.key(c)], box.offsets, box.sizes)) {
        if (run.slot == t.content) {
          Move move = reversed(move_of(run, at));
          move.slot = source();
          task.plan.add(to, move);
        } else if (run.slot == kPaddingSlot && first && outline) {
          task.unwanted.push_back({source(), at, run.items(), {}, {}});
        }
        at += run.items();
      }
    }
  }
  task.plan.finish();
  return task;
}

}  // namespace mckpt
