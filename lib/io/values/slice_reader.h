// SliceReader: the bytes of a slice of a tensor, however the tensor is stored.
//
//   w [4, 6], slice [1:3, 2:5]     row 1:  . . a b c .      ->   a b c d e f
//                                  row 2:  . . d e f .
//
// Neighbouring items are read together: rows of the slice one by one, whole rows in one stretch.
#pragma once

#include <span>
#include <vector>

#include "core/base/int.h"
#include "io/choice/slice.h"
#include "io/store/store_files.h"
#include "io/values/tensor_reader.h"

namespace mckpt::impl {

class Store;

// Belongs to one thread. The store and its files outlive it.
class SliceReader {
 public:
  SliceReader(const Store& store, const StoreFiles& files) : store_(store), reader_(store, files) {}

  // The bytes of the contiguous little-endian form of the slice. pre: one range for each dimension. Throws
  // kUsage for a part of a tensor whose elements do not fill whole bytes, kSizeOverflow.
  static i64 bytes(const Store& store, i64 tensor, std::span<const SliceRange> ranges);

  // Fills `to`. pre: it has bytes() bytes. Throws what TensorReader::read() throws.
  void read(i64 tensor, std::span<const SliceRange> ranges, std::span<u8> to);
  void forget() { reader_.forget(); }  // as TensorReader::forget()

 private:
  const Store& store_;
  TensorReader reader_;
};

}  // namespace mckpt::impl
