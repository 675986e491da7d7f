#include "convert/jobs/import_job.h"

#include <algorithm>
#include <numeric>

#include "convert/jobs/holding_reader.h"

namespace mckpt {
namespace {

// Which parameters share source tensors, directly or over others.
class Groups {
 public:
  explicit Groups(const std::vector<ModelParameter>& parameters, i32 sources)
      : parent_(parameters.size()), reader_(static_cast<std::size_t>(sources), -1) {
    std::iota(parent_.begin(), parent_.end(), 0);
    for (i32 p = 0; p < static_cast<i32>(parameters.size()); p++)
      for (i32 source : parameters[static_cast<std::size_t>(p)].sources)
        if (source >= 0) join(p, source);
  }
  i32 of(i32 parameter) {
    i32& up = parent_[static_cast<std::size_t>(parameter)];
    return up == parameter ? parameter : up = of(up);
  }

 private:
  void join(i32 parameter, i32 source) {
    i32& first = reader_[static_cast<std::size_t>(source)];
    if (first < 0)
      first = parameter;
    else
      parent_[static_cast<std::size_t>(of(parameter))] = of(first);
  }

  std::vector<i32> parent_, reader_;
};

}  // namespace

ImportJob::ImportJob(const Store& source, const KeyTable& keys, const ChunkList& chunks,
                     const DcpLayout* layout, ReadSums* sums)
    : FramedJob(layout), keys_(keys), chunks_(chunks), bytes_(source), regions_(source, sums) {
  group_chunks();
}

Conversion ImportJob::conversion_of(i64 chunk) const {
  const CheckpointKey& key = keys_[chunks_.key(chunk)];
  try {
    return import_conversion(keys_.parameter(key), chunks_.dtype(chunk));
  } catch (Error& e) {
    throw e.default_tensor(key.name);
  }
}

// A task's values all go the same way, so chunks of one group that differ in type are tasks apart. Tasks
// stand in the order of their first chunks: those that follow each other write next to each other.
void ImportJob::group_chunks() {
  Groups groups(keys_.parameters(), keys_.map().sources().size());
  struct Label {
    i64 task;
    Conversion conversion;
  };
  std::unordered_map<i32, std::vector<Label>> labels;
  std::vector<i64> task_of(static_cast<std::size_t>(chunks_.size())), count;
  for (i64 c = 0; c < chunks_.size(); c++) {
    i32 parameter = keys_[chunks_.key(c)].parameter;
    Conversion conversion = conversion_of(c);
    std::vector<Label>& known = labels[groups.of(parameter)];
    auto at = std::ranges::find(known, conversion, &Label::conversion);
    if (at == known.end()) {
      known.push_back({std::ssize(count), conversion});
      at = known.end() - 1;
      count.push_back(0);
      task_bytes_.push_back(0);
    }
    task_of[static_cast<std::size_t>(c)] = at->task;
    count[static_cast<std::size_t>(at->task)]++;
    task_bytes_[static_cast<std::size_t>(at->task)] +=
        dtype_bytes(conversion.to, Shape(chunks_.box(c).sizes).items());
  }
  tasks_.assign(count.size() + 1, 0);
  for (std::size_t t = 0; t < count.size(); t++) tasks_[t + 1] = tasks_[t] + count[t];
  std::vector<i64> next(tasks_.begin(), tasks_.end());
  order_.resize(task_of.size());
  for (std::size_t c = 0; c < task_of.size(); c++)
    order_[static_cast<std::size_t>(next[static_cast<std::size_t>(task_of[c])]++)] = static_cast<i32>(c);
}

std::span<const i32> ImportJob::chunks_of(i64 index) const {
  i64 begin = tasks_[static_cast<std::size_t>(index)], end = tasks_[static_cast<std::size_t>(index) + 1];
  return std::span(order_).subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
}

CopyTask ImportJob::task(i64 index) const {
  CopyTask task{Plan(this), {}};
  TensorRegions::InPlan sources(regions_, task.plan);
  task.conversion = conversion_of(chunks_of(index).front());
  for (i32 chunk : chunks_of(index)) {
    ChunkList::Box box = chunks_.box(chunk);
    ChunkList::Place place = chunks_.place(chunk);
    i32 item_bytes = static_cast<i32>(dtype_bytes(place.dtype, 1));
    i32 to = task.plan.add_destination(
        {place.file, place.data_offset, Shape(box.sizes).items(), item_bytes, chunk});
    i64 at = 0;
    for (const ItemRun& run : keys_.runs(keys_[chunks_.key(chunk)], box.offsets, box.sizes)) {
      Move move = move_of(run, at);
      if (run.slot == kPaddingSlot) move.kind = MoveKind::kZero;
      sources.add(to, move);
      at += run.items();
    }
  }
  task.plan.finish();
  return task;
}

}  // namespace mckpt
