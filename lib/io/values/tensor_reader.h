// TensorReader: reads the items of a tensor in row-major order, however the tensor is stored: in several
// files, shards, at strides, compressed, big-endian. Digests, statistics, checks and some conversions use it.
//
//   tensor [4, 4] of 2 chunks (columns 0..1 in file 0, 2..3 in file 1)
//   window    row 0: | 0 | 0 | 1 | 1 |   row 1: | 0 | 0 | 1 | 1 |   ...
//   filled from both files, then passed to the caller, up to 1 MiB at a time
//
// Memory: a window of 1 MiB, as much again for chunks in pieces, and strided_bytes for tensors at strides.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

class Store;
class StoreFiles;

// Keeps the tensor open that it read last, so that reads of parts of it one after the other are cheap.
class TensorReader {
 public:
  static constexpr i64 kWindowBytes = 1 << 20;
  static constexpr i64 kStridedBytes = 32 << 20;
  // Called with a stretch of the tensor's contiguous little-endian bytes, whole elements, and its offset in
  // bytes from the tensor's first. The bytes are valid during the call.
  using Take = std::function<void(std::span<const u8> bytes, i64 at)>;

  // A reader belongs to one thread; store and files are shared and outlive it. strided_bytes: memory for a
  // tensor at strides, in all its chunks together; with more memory, its file is read fewer times.
  TensorReader(const Store& store, const StoreFiles& files, i64 strided_bytes = kStridedBytes);
  ~TensorReader();

  // Calls `take` with all bytes of the tensor, in order. Where chunks overlap, the first in the list counts;
  // an item that no chunk contains is an error (kChunkHole), although the opener left the tensor in the
  // store. Throws what resolving and reading chunks throws, with the tensor's name.
  void read(i64 tensor, const Take& take);
  // read() for items [begin, end). pre: the type's elements fill whole bytes, or the range is the whole
  // tensor.
  void read(i64 tensor, i64 begin, i64 end, const Take& take);

  // Forgets the tensor that is open: the next read looks at its files again.
  void forget();

  // The one stretch of a file in which the tensor is stored exactly as it is read; nothing if there is no
  // such stretch. Throws what read() throws.
  struct Stretch {
    i32 file = -1;
    i64 offset = 0;
  };
  std::optional<Stretch> stretch(i64 tensor);

  // The number of bytes of the tensor in row-major form. Throws kSizeOverflow.
  static i64 tensor_bytes(const Store& store, i64 tensor);

 private:
  struct Piece;
  void open(i64 tensor);
  bool is_one_stretch() const;
  void check_cover(i64 tensor) const;
  void read_direct(const Piece& piece, i64 begin, i64 end, const Take& take);
  void read_pieces(i64 begin, i64 end, const Take& take);
  void fill(const Piece& piece, i64 begin, i64 end, u8* window);

  const Store& store_;
  const StoreFiles& files_;
  i64 strided_bytes_;
  std::vector<u8> window_, stage_;
  // The tensor that is open.
  i64 tensor_ = -1;
  i64 item_bytes_ = 1;
  std::vector<Piece> pieces_;
};

}  // namespace mckpt::impl
