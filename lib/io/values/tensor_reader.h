// Reads the items of a tensor in the order of the global tensor, however it is stored: across files, shards,
// strides and byte orders, through one window of a megabyte. Digests, statistics, checks and conversions use
// it.
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

class TensorReader {
 public:
  static constexpr i64 kWindowBytes = 1 << 20;
  static constexpr i64 kStridedBytes = 32 << 20;
  // Takes a stretch of the tensor's contiguous little-endian bytes, whole elements of it, and where it begins
  // among them, in bytes.
  using Take = std::function<void(std::span<const u8> bytes, i64 at)>;

  // A reader belongs to one thread; store and files are shared and outlive it. Of a tensor at strides up to
  // strided_bytes are kept, in all its chunks: the more, the fewer times its file is read.
  TensorReader(const Store& store, const StoreFiles& files, i64 strided_bytes = kStridedBytes);
  ~TensorReader();

  // Calls `take` with all bytes of the tensor, in order. Where chunks overlap, the first in the list counts;
  // an item that no chunk holds is an error (kChunkHole): openers report such tensors and leave them in.
  void read(i64 tensor, const Take& take);
  // The same for items [begin, end). pre: the type's elements fill whole bytes, or the range is the whole
  // tensor.
  void read(i64 tensor, i64 begin, i64 end, const Take& take);

  // The one stretch of a file in which the tensor is stored exactly as it is read; nothing if there is no
  // such stretch. Throws as read() does.
  struct Stretch {
    i32 file = -1;
    i64 offset = 0;
  };
  std::optional<Stretch> stretch(i64 tensor);

  // Bytes that the tensor has in row-major form.
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
