// ChunkReader: the items of one chunk in row-major order, little-endian, however its file stores them.
//
//   row-major                 a read is a read of the file
//   at strides                a box of the chunk is read at once and kept: torch saves a transposed or sliced
//                             tensor as a view (sizes and strides) of a storage
//   big-endian                bytes are swapped after the read
//
// Example: a chunk [4, 6] that is stored as its transpose has strides {1, 4}. Items 0..5, a row, are 4 items
// apart in the file; the box has all 24 items if memory allows, so the file is read once and not four times.
#pragma once

#include <memory>

#include "io/file/file.h"
#include "io/store/store.h"

namespace mckpt::impl {

// Belongs to one thread; shares the file.
class ChunkReader {
 public:
  // `sizes` is the box of the chunk and outlives the reader. A chunk at strides may take up to strided_bytes
  // of memory. Throws kBadExtent if its items are not inside the file, a stride is negative, or elements
  // smaller than a byte are at strides; kSizeOverflow if its extent does not fit 63 bits.
  ChunkReader(std::shared_ptr<const ByteSource> file, ChunkData data, std::span<const i64> sizes,
              i64 strided_bytes);

  // Fills `to` with items from `first` on. Cheapest if items are read in order. Throws kReadFailed. pre:
  // elements are not smaller than a byte.
  void read(i64 first, std::span<u8> to);

  // Whether the file stores the items exactly as they are read: row-major and little-endian.
  bool plain() const { return data_.strides.empty() && !data_.big_endian; }
  const ByteSource& file() const { return *file_; }
  i64 offset() const { return data_.offset; }
  i64 item_bytes() const { return item_bytes_; }

 private:
  void check_inside() const;
  void load_box(i64 item);

  std::shared_ptr<const ByteSource> file_;
  ChunkData data_;
  std::span<const i64> sizes_;
  i64 strided_bytes_;
  i64 item_bytes_;
  // Items [box_begin_, box_begin_ + box_.size() / item_bytes_) of a chunk at strides.
  i64 box_begin_ = 0;
  std::vector<u8> box_, scratch_;
};

}  // namespace mckpt::impl
