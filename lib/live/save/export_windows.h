// The windows of an export: stretches of tensors in the order of the files, who writes them, and what of each
// comes from which rank.
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

// A stretch of what a task writes.
struct ExportUnit {
  i64 task = 0;
  ItemRange items;
};

// Everything in batches of about so many bytes, or smaller, so that all ranks have something to write.
std::vector<std::vector<ExportUnit>> export_batches(const ChunkJob& plan, int ranks, i64 most_bytes);

// As many times wider may items be that are stored than those that are written.
i64 widest_ratio(const ChunkJob& plan);

// What goes from one rank's chunk into a window; the items of its source, one after the other, are what is
// sent.
struct ExportPart {
  Move move;
  i32 chunk = 0, rank = 0;

  i64 bytes(i64 item_bytes) const { return move.items() * item_bytes; }
  // The two halves of the way: out of the chunk into what is sent, and from there to the window.
  ItemCopy packing(const u8* chunk_bytes, u8* sent, DType type) const;
  ItemCopy unpacking(const u8* sent, u8* first_item, const ItemCast& cast) const;
};

// A task at a time, with the moves of one rank apart: of all windows but its own it needs only those, and
// they get fewer as the windows of more ranks get more.
class ExportTask {
 public:
  ExportTask(const ChunkJob& plan, i32 rank) : plan_(plan), rank_(rank) {}
  const CopyTask& go_to(i64 index);  // plans it unless it is there

  // In the same order on every rank.
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
