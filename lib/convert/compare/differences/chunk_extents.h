// ChunkExtents: which chunks have items in a stretch of a file. A comparison that finds a difference at some
// byte uses it to name the tensor.
//
//   file 0   [ w: 0-999 ][ v: 1000-1499 ]      each(0, 990, 1010)  -->  w, v
//
// Extents may overlap, because tensors may share bytes. Building costs one header per chunk and a sort; a
// query costs a binary search and the extents that it visits.
#pragma once

#include <vector>

#include "core/base/int.h"
#include "core/items/dtype.h"

namespace mckpt::impl {

class ChunkList;

// An index over a list of chunks, built once; const and thread-safe afterwards. It refers to nothing.
class ChunkExtents {
 public:
  // Reads the header of every chunk that has one of its own. Chunks whose headers cannot be read are left
  // out.
  explicit ChunkExtents(const ChunkList& chunks);

  struct Extent {
    i32 file = 0;
    i64 begin = 0, end = 0;
    i64 chunk = 0;
    DType dtype = DType::kU8;  // as stored
  };

  // Calls visit(extent) for all extents that overlap bytes [begin, end) of the file, in ascending order of
  // their beginnings.
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
  std::vector<i64> reach_;       // by extent: the largest end of the extents of its file up to it
};

}  // namespace mckpt::impl
