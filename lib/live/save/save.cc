#include "live/save/save.h"

namespace mckpt {

LiveSaveJob::LiveSaveJob(const LiveModel& model, const KeyTable& keys, const DcpLayout& layout,
                         std::span<const i32> table_key)
    : FramedJob(&layout), layout_(layout), live_(model, keys) {
  model.wait_for_writes();
  for (i32 f = 0; f < live_.file_count(); f++)
    memory_.push_back(std::make_unique<DeviceBytes>(model.device(), live_.memory(f)));
  for (i64 c = 0; c < layout.chunk_count(); c++) {
    DcpLayout::Chunk chunk = layout.chunk(c);
    if (chunk.rank != model.world().rank()) continue;
    i64 live = live_.find(table_key[static_cast<std::size_t>(chunk.key)], chunk.offsets);
    if (live < 0 || live_.dtype(live) != layout.key(chunk.key).dtype)
      throw Error(Code::kInternal, "the model is sharded in another way than the checkpoint")
          .tensor(layout.key(chunk.key).name.text);
    tasks_.push_back({c, live});
  }
}

CopyTask LiveSaveJob::task(i64 index) const {
  const Task& t = tasks_[static_cast<std::size_t>(index)];
  DcpLayout::Chunk chunk = layout_.chunk(t.chunk);
  ChunkList::Place from = live_.place(t.live);
  i64 items = Shape(chunk.sizes).items();
  i32 item_bytes = static_cast<i32>(dtype_bytes(from.dtype, 1));
  CopyTask task;
  task.conversion = no_conversion(from.dtype);
  i32 source = task.plan.add_source({from.file, from.data_offset, items, item_bytes, -1});
  i32 to = task.plan.add_destination(
      {chunk.rank, chunk.data_offset(), items, item_bytes, static_cast<i32>(t.chunk)});
  task.plan.add(to, {.slot = source, .length = items});
  task.plan.finish();
  return task;
}

i64 LiveSaveJob::task_bytes(i64 index) const {
  return std::ssize(live_.bytes(tasks_[static_cast<std::size_t>(index)].live));
}

}  // namespace mckpt
