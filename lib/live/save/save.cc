// Pairs every chunk that the layout assigns to this rank with the chunk of the same key and box in memory. A
// chunk that several ranks hold is written by the rank that the layout chose; the others leave it out.
#include "live/save/save.h"

#include "convert/jobs/chunk_jobs.h"
#include "core/base/error.h"
#include "io/dcp/write/layout.h"
#include "live/device/device_bytes.h"
#include "live/model/chunks.h"
#include "live/model/model.h"
#include "runtime/comm/comm.h"

namespace mckpt::impl {
namespace {

// The parts that the job refers to and keeps: its two sides, and the memory of the model as sources of bytes.
struct Saved {
  Saved(const LiveModel& model, const KeyTable& keys, const DcpLayout& layout, std::span<const i32> table_key)
      : live(model, keys), planned(layout, table_key) {
    for (i32 f = 0; f < live.file_count(); f++)
      memory.push_back(std::make_unique<DeviceBytes>(model.device(), live.memory(f)));
  }

  LiveChunks live;
  PlannedChunks planned;
  std::optional<SomeChunks> own;  // of this rank
  std::vector<std::unique_ptr<DeviceBytes>> memory;
};

}  // namespace

ChunkJob save_job(const LiveModel& model, const KeyTable& keys, const DcpLayout& layout,
                  std::span<const i32> table_key) {
  model.wait_for_writes();
  auto saved = std::make_shared<Saved>(model, keys, layout, table_key);
  std::vector<i32> own, live;
  for (i32 c = 0; c < static_cast<i32>(layout.chunk_count()); c++) {
    DcpLayout::Chunk chunk = layout.chunk(c);
    if (chunk.rank != model.world().rank()) continue;
    i64 held = saved->live.find(table_key[chunk.key], chunk.offsets);
    if (held < 0 || saved->live.dtype(held) != layout.key(chunk.key).dtype)
      throw Error(Code::kInternal, "the model is sharded in another way than the checkpoint")
          .tensor(layout.key(chunk.key).name.text);
    own.push_back(c), live.push_back(static_cast<i32>(held));
  }
  saved->own.emplace(saved->planned, std::move(own));
  auto memory = [saved](i32 file) -> const ByteSource& { return *saved->memory[file]; };
  return pairs_job(saved->live, memory, *saved->own, live);
}

}  // namespace mckpt::impl
