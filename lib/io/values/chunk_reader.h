// The items of one chunk in row-major order, however they lie in its file.
#pragma once

#include <memory>

#include "core/base/int.h"
#include "io/store/store.h"

namespace mckpt::impl {

class ByteSource;

class ChunkReader {
 public:
  // `sizes` is the box of the chunk and outlives the reader. A chunk at strides may take up to strided_bytes
  // of memory. Throws kBadExtent when its items do not lie inside the file.
  ChunkReader(std::shared_ptr<const ByteSource> file, ChunkData data, std::span<const i64> sizes,
              i64 strided_bytes);

  // Fills `to` with items from `first` on. Cheapest when asked in order. Not thread-safe.
  void read(i64 first, std::span<u8> to);

  // Whether the items lie in the file exactly as they are read.
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
