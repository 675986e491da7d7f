// The windows of an export: stretches of tensors in the order of the files, the ranks that write them, and
// the items of each that come from each rank.
//
//   task 0 (100 items), task 1 (60 items), batches of 64 items:
//       batch 0: task 0 [0, 64)     batch 1: task 0 [64, 100), task 1 [0, 28)     batch 2: task 1 [28, 60)
#pragma once

#include "core/base/int.h"
#include "core/items/item_run.h"
#include "core/items/move.h"
#include "io/copy/job.h"

namespace mckpt::impl {

enum class DType : u8;
class ChunkJob;
struct ItemCast;
struct ItemCopy;

// A stretch of the tensor that a task of the export writes.
struct ExportUnit {
  i64 task = 0;
  ItemRange items;
};

// All tensors of the plan in batches of at most about `most_bytes`, and small enough that every rank has a
// batch.
std::vector<std::vector<ExportUnit>> export_batches(const ChunkJob& plan, int ranks, i64 most_bytes);

// The largest ratio of the size of a stored item to the size of the written one, rounded up: 2 for fp32 to
// bf16.
i64 widest_ratio(const ChunkJob& plan);

// The items that one rank sends for a window, from one of its chunks. They are sent one after the other, in
// the order of the move.
struct ExportPart {
  Move move;
  i32 chunk = 0, rank = 0;

  i64 bytes(i64 item_bytes) const { return move.items() * item_bytes; }
  // The two halves of the way: from the chunk into the send buffer, and from the receive buffer into the
  // window.
  ItemCopy packing(const u8* chunk_bytes, u8* sent, DType type) const;
  ItemCopy unpacking(const u8* sent, u8* first_item, const ItemCast& cast) const;
  // The items of the destination, from their places to the same places.
  Move within_destination() const;
};

// One task of the export at a time, with the moves from this rank's chunks listed apart: for the windows of
// other ranks only those are needed, which keeps the work of a rank small if there are many ranks.
class ExportTask {
 public:
  ExportTask(const ChunkJob& plan, i32 rank) : plan_(plan), rank_(rank) {}
  const CopyTask& go_to(i64 index);  // plans the task, unless it is the present one

  // The parts of a window of the present task, all or this rank's, in the same order on every rank.
  std::vector<ExportPart> parts(ItemRange window) const { return clipped(task_.plan.moves(), window); }
  std::vector<ExportPart> own_parts(ItemRange window) const { return clipped(own_, window); }

 private:
  std::vector<ExportPart> clipped(std::span<const PlannedMove> moves, ItemRange window) const;

  const ChunkJob& plan_;
  i32 rank_;
  i64 index_ = -1;
  CopyTask task_;
  std::vector<PlannedMove> own_;
};

}  // namespace mckpt::impl
