// Which chunks have items in a stretch of a file.
#pragma once

#include <vector>

#include "core/base/int.h"
#include "core/items/dtype.h"

namespace mckpt::impl {

class ChunkList;

class ChunkExtents {
 public:
  // Reads the header of every chunk that has one of its own. Chunks that cannot be placed, because of what
  // is wrong with their headers, are left out.
  explicit ChunkExtents(const ChunkList& chunks);

  struct Extent {
    i32 file = 0;
    i64 begin = 0, end = 0;
    i64 chunk = 0;
    DType dtype = DType::kU8;  // as stored
  };

  // Calls visit(extent) for all that overlap the stretch, in the order in which they begin. Tensors may share
  // bytes.
  template <typename Visit>
  void each(i32 file, i64 begin, i64 end, Visit visit) const {
    for (std::size_t e = first_behind(file, begin); e < extents_.size(); e++) {
      const Extent& extent = extents_[e];
      if (extent.file != file || extent.begin >= end) return;
      if (extent.end > begin) visit(extent);
    }
  }

 private:
  std::size_t first_behind(i32 file, i64 offset) const;

  std::vector<Extent> extents_;  // by file and begin
  std::vector<i64> reach_;       // of each, the end of the farthest one of its file up to it
};

}  // namespace mckpt::impl
