// ChunkJob: copies the chunks of one side into the chunks of another. Import, export, reshard, loading a live
// model, saving one, and renaming layers are all this job: they differ in their two sides and in which chunks
// are written by one task. A move is what two chunks have in common:
//
//   from  [ q rows 0-7 | k rows 0-1 ]  [ q rows 8-15 | k rows 2-3 ]      runs over the slots q, k
//   to    [ q rows 4-11 ]                                           -->  2 moves, of 4 rows each
//
// Copies of a slot (mappings/rule.h) are chunks of items of their own between two checkpoints. A tensor of
// the model that a checkpoint has twice is copied twice on import, and on export copied once and compared
// with the other copy.
//
// The plan of a task is made when it is asked for and is not kept: in memory a job is a few numbers for each
// chunk, so that a job of 300,000 chunks takes some megabytes. All functions are const and thread-safe;
// threads ask for tasks in any order, and a task that is asked for twice is the same twice.
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
class ReadableChunks;

// The tasks of a job: which chunks each task writes, and which chunks of the other side can contain something
// of what it writes. Tasks that need the same sources share a group:
//
//   task      0       1       2              group     0              1
//   targets   5 6     7       8 9            sources   12 13 14       15
//   group     0       0       1
struct ChunkTasks {
  Grouped targets;             // by task: chunks of the side `to`
  std::vector<i32> group;      // by task: the group of its sources; -1: it reads none
  Grouped sources;             // by group: chunks of the side `from`
  std::vector<ItemCast> cast;  // by task: what is done to its values
  // By group: boxes of the two sides may be of tensors with other numbers of rows (reshard_job). Empty: none.
  std::vector<bool> resized{};
};

// The job. pre: everything that the parts refer to lives as long as the job; `owned` can keep some of it
// alive. A task throws kBadCast if its sources are stored with different types, and what reading the headers
// of records throws; an outline reads no header.
class ChunkJob final : public CopyJob {
 public:
  using Files = std::function<const ByteSource&(i32 file)>;
  struct Parts {
    ChunkSide from, to;
    ChunkTasks tasks;
    Files files{};                         // the files of `from`; thread-safe; empty: the files of `readable`
    std::vector<CarriedRecord> records{};  // each is one more task, after the tasks of `tasks`
    std::shared_ptr<const void> owned{};   // keeps alive what nobody else does
    std::shared_ptr<const ReadableChunks> readable{};  // `from`, if it is one
  };
  explicit ChunkJob(Parts parts);

  // The chunks that the task writes. pre: the task does not carry a record
  std::span<const i32> targets_of(i64 task) const { return tasks_.targets[task]; }
  const ItemCast& cast_of(i64 task) const { return tasks_.cast[task]; }
  const ChunkSide& target() const { return to_; }

  i64 task_count() const override { return tasks_.targets.size() + std::ssize(records_); }
  CopyTask task(i64 index) const override { return make(index, false); }
  CopyTask outline(i64 index) const override { return make(index, true); }
  i64 task_bytes(i64 index) const override { return task_bytes_[index]; }
  const ByteSource& source(i32 file) const override;
  void prepare(int threads, i64 memory_bytes) const override;

  // The `tensor` of a region in a plan of this job is the number of a chunk; -1: a carried record.
  i32 source_tensor(const Region& r) const override { return r.tensor < 0 ? -1 : from_.chunks.key(r.tensor); }
  i32 target_tensor(const Region& r) const override {
    return r.tensor < 0 ? -1 : to_.chunks.tensor(r.tensor);
  }
  std::string tensor_of(const Region& r) const override {
    return r.tensor < 0 ? std::string() : to_.chunks.name(r.tensor);
  }
  [[noreturn]] void refuse_unlike(const Region& region, i64 item) const override;
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
  std::shared_ptr<const ReadableChunks> readable_;
};

}  // namespace mckpt::impl
