// ChunkJob: the chunks of one side into those of another. It is the one job behind import, export, reshard,
// gathering into a live model, saving one, and giving layers other names; they differ in their sides and in
// what makes a task. A move is what two chunks have in common:
//
//   from  [ q rows 0-7 | k rows 0-1 ]  [ q rows 8-15 | k rows 2-3 ]      runs over the slots q, k
//   to    [ q rows 4-11 ]                                           -->  2 moves, of 4 rows each
//
// Plans are made again whenever they are asked for: a job keeps a few numbers for each chunk.
#pragma once

#include <functional>
#include <memory>

#include "convert/jobs/carried_record.h"
#include "convert/jobs/chunk_side.h"
#include "core/base/grouped.h"
#include "core/items/item_cast.h"
#include "io/copy/job.h"

namespace mckpt::impl {

class ByteSource;
class DcpTensorFrame;

// Which chunks a task writes, and which ones may hold something of what it writes.
struct ChunkTasks {
  Grouped targets;                     // by task
  std::vector<i32> group;              // by task: its sources
  Grouped sources;                     // by group
  std::vector<ItemCast> cast;  // by task
};

class ChunkJob final : public CopyJob {
 public:
  using Files = std::function<const ByteSource&(i32 file)>;
  struct Parts {
    ChunkSide from, to;
    ChunkTasks tasks;
    Files files;                           // that `from` lies in
    std::vector<CarriedRecord> records{};  // each is one more task
    std::shared_ptr<const void> owned{};   // what the sides refer to and nobody else keeps
  };
  explicit ChunkJob(Parts parts);

  // The chunks that the task writes. pre: it is no carried record's
  std::span<const i32> targets_of(i64 task) const { return tasks_.targets[task]; }
  const ItemCast& cast_of(i64 task) const { return tasks_.cast[task]; }
  const ChunkSide& target() const { return to_; }

  i64 task_count() const override { return tasks_.targets.size() + std::ssize(records_); }
  CopyTask task(i64 index) const override { return make(index, false); }
  CopyTask outline(i64 index) const override { return make(index, true); }
  i64 task_bytes(i64 index) const override { return task_bytes_[index]; }
  const ByteSource& source(i32 file) const override { return files_(file); }

  // A region's `tensor` is the number of its chunk; -1: it is a carried record.
  i32 source_tensor(const Region& r) const override { return r.tensor < 0 ? -1 : from_.chunks.key(r.tensor); }
  i32 target_tensor(const Region& r) const override {
    return r.tensor < 0 ? -1 : to_.chunks.tensor(r.tensor);
  }
  std::string tensor_of(const Region& r) const override {
    return r.tensor < 0 ? std::string() : to_.chunks.name(r.tensor);
  }
  Frame frame(const Region& region) const override;
  void write_head(const Region& region, std::span<u8> to) const override;
  void write_tail(const Region& region, u32 crc32, std::span<u8> to) const override;

 private:
  class TaskMaker;
  CopyTask make(i64 index, bool outline) const;
  const DcpTensorFrame* frame_of(const Region& r) const {
    return r.tensor < 0 ? nullptr : to_.chunks.frame(r.tensor);
  }

  ChunkSide from_, to_;
  ChunkTasks tasks_;
  Files files_;
  std::vector<CarriedRecord> records_;
  std::vector<i64> task_bytes_;
  std::shared_ptr<const void> owned_;
};

}  // namespace mckpt::impl
