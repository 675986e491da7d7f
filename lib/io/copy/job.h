// CopyJob: what the copy engine carries out. A job is a list of independent tasks; a task is a plan (moves
// from regions of source files to regions of result files) and a cast. Plans are made when they are asked for
// and not stored, so the memory for plans does not grow with the job.
//
//   task 7:  source 0: file 2, byte 3352, 32 x 16 items     destination 0: file 0, byte 832, 20 x 16 items
//            move:     items 192..511 of source 0       ->  items 0..319
//            cast:     bfloat16 to float32
//
// A destination may have a frame: bytes around its items that depend on them, as the zip records around a
// tensor in a .distcp file. The engine leaves room for the frame and asks the job to fill it in.
#pragma once

#include <span>
#include <string>

#include "core/base/int.h"
#include "core/items/item_cast.h"
#include "core/items/item_run.h"
#include "core/items/plan.h"
#include "io/store/checksum.h"

namespace mckpt::impl {

class ByteSource;

// One unit of work: what one thread carries out, and what the log has as done or not done.
struct CopyTask {
  Plan plan;      // finished
  ItemCast cast;  // for every item; source regions have items of its type `from`, destinations of `to`
  // Only in an outline: items of source regions (`slot`) that the result has no place for, such as padding.
  std::vector<ItemRun> unwanted{};
  // The stored sums of the records that the plan reads, if their format stores any; none in an outline.
  std::vector<Checksum> sums{};
};

// The sizes of the bytes around the items of a destination region in its file.
struct Frame {
  i64 head_bytes = 0;  // directly before the first item
  i64 tail_bytes = 0;  // directly behind the last
};

// Owned by its caller, const while it is carried out: all functions are called from all threads.
class CopyJob : public RegionNames {
 public:
  // Called by whoever carries the job out, before its first task: how many threads will ask for tasks, and
  // the memory for the buffers of all of them together. Until then the job takes little, for one thread:
  // threads and memory belong to a run, and are not known when the job is planned.
  virtual void prepare(int /*threads*/, i64 /*memory_bytes*/) const {}
  virtual i64 task_count() const = 0;
  virtual CopyTask task(i64 index) const = 0;  // without side effects: may be called again for the same task
  // The task's plan for the proof, made without reading data files: the file and offset of a source region
  // may be any numbers that tell it from the others.
  virtual CopyTask outline(i64 index) const { return task(index); }
  // The tensor of the source, or of the result, that a region is a piece of; -1: a piece of an object.
  virtual i32 source_tensor(const Region& region) const { return region.tensor; }
  virtual i32 target_tensor(const Region& region) const { return region.tensor; }
  virtual i64 task_bytes(i64 /*index*/) const { return 1; }  // roughly, how many bytes it writes
  // By this tasks are shared out: roughly, how many bytes the task reads or writes, whichever are more.
  virtual i64 task_work(i64 index) const { return task_bytes(index); }
  virtual const ByteSource& source(i32 file) const = 0;  // by Region::file; lives as long as the job

  // Throws: the source has another item where a move of kEqual compares it with what is written at `item` of
  // the destination region.
  [[noreturn]] virtual void refuse_unlike(const Region& region, i64 item) const;

  // The frame of a destination region. write_head() and write_tail() fill it in; the tail is written after
  // all items of the region.
  virtual Frame frame(const Region&) const { return {}; }
  virtual void write_head(const Region&, std::span<u8>) const {}
  // crc32: of the region's bytes as written.
  virtual void write_tail(const Region&, u32 /*crc32*/, std::span<u8>) const {}
};

}  // namespace mckpt::impl
