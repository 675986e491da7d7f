// CopyJob: what the copy engine carries out. Its tasks are independent of each other; each is a plan of one
// parameter, made again whenever it is asked for, so that a job of any size costs no memory.
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

struct CopyTask {
  Plan plan;              // finished
  ItemCast cast;  // of every item; the item_bytes of the plan's regions are those of its two ends
  // Of an outline: items of source regions (`slot`) that the result has no place for, such as padding.
  std::vector<ItemRun> unwanted{};
  // Of the records that the plan reads, where their formats keep any; none in an outline.
  std::vector<Checksum> sums{};
};

// What stands around the items of a destination region in its file: the zip records around a tensor of a
// .distcp file.
struct Frame {
  i64 head_bytes = 0;  // directly before the first item
  i64 tail_bytes = 0;  // directly behind the last
};

class CopyJob : public RegionNames {
 public:
  virtual i64 task_count() const = 0;
  virtual CopyTask task(i64 index) const = 0;  // thread-safe, without side effects
  // The same task for a proof, without reading what the source's own headers of records tell: the places of
  // source regions need only tell them apart. Thread-safe.
  virtual CopyTask outline(i64 index) const { return task(index); }
  // The tensors that regions of its plans are pieces of, in the numbers of either side; -1: of none, but of
  // an object.
  virtual i32 source_tensor(const Region& region) const { return region.tensor; }
  virtual i32 target_tensor(const Region& region) const { return region.tensor; }
  virtual i64 task_bytes(i64 /*index*/) const { return 1; }  // that it writes, about: its share of the work
  virtual const ByteSource& source(i32 file) const = 0;      // thread-safe

  virtual Frame frame(const Region&) const { return {}; }
  virtual void write_head(const Region&, std::span<u8>) const {}
  // crc32: of the region's bytes as written.
  virtual void write_tail(const Region&, u32 /*crc32*/, std::span<u8>) const {}
};

}  // namespace mckpt::impl
