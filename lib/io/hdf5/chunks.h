// A chunked dataset (or one of which nothing was written) as the row-major bytes of its values.
//
//   dims [5, 6], chunks of [2, 4]:   0 0 0 0 1 1      chunks at the edge reach over it;
//                                    0 0 0 0 1 1      one that was never written reads
//                                    2 2 2 2 3 3      as the fill value
//                                    ...
//
// Chunks that were filtered (compressed) are unpacked as a whole. One row of chunks is kept in memory, so
// reading in order unpacks each once.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "io/file/file.h"
#include "io/hdf5/answer.h"

namespace mckpt::impl {

// Asked for a range of the dataset's bytes, it finds the chunks that have it. Safe for several threads.
class Hdf5Chunks final : public ByteSource {
 public:
  // Both outlive it; `base` is the offset of the superblock. Throws kUnsupportedHdf5 for filtered chunks of
  // which one row is beyond the limit of memory. pre: check_dataset().
  Hdf5Chunks(const ByteSource& file, i64 base, const Hdf5Dataset& dataset);

 private:
  using Bytes = std::shared_ptr<const std::vector<u8>>;

  // Multiplies the last dimension, of the dataset and of the chunks.
  void widen(i64 factor);
  void read_inside(i64 offset, std::span<u8> to) const override;
  void read_in_chunk(i64 place, i64 at, std::span<u8> to) const;
  void fill(i64 at, std::span<u8> to) const;
  Bytes unpacked(const Hdf5Chunk& chunk) const;
  Bytes cached(i64 place) const;

  const ByteSource& file_;
  i64 base_;
  const Hdf5Dataset& dataset_;
  i64 chunk_bytes_;
  // The dimensions, the last one in bytes; those that chunks do not cut are joined to the one before them.
  std::vector<i64> dims_, chunk_dims_;
  std::size_t most_cached_ = 0;  // chunks

  mutable std::mutex mutex_;
  mutable std::unordered_map<i64, Bytes> cache_;
  mutable std::deque<i64> order_;  // of the cached ones; the oldest is in front
};

}  // namespace mckpt::impl
