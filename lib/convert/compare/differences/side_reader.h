// A side of a comparison, read tensor by tensor. Values that a view computes are read before they are rounded
// where the other side has another type (io/store/unrounded.h): what the other side has was rounded once,
// too.
#pragma once

#include <vector>

#include "core/items/dtype.h"
#include "io/store/store_files.h"
#include "io/values/tensor_reader.h"

namespace mckpt::impl {

class Store;

class SideReader {
 public:
  // The store outlives it.
  explicit SideReader(const Store& store);

  // The type in which items are read for a comparison with items of type `other`.
  DType type(i64 tensor, DType other) const;
  // Passes the items [begin, end) in that type, in order, with where they begin in the tensor, in bytes.
  void read(i64 tensor, DType type, i64 begin, i64 end, const TensorReader::Take& take);

 private:
  const Store& store_;
  StoreFiles files_;
  TensorReader reader_;
  std::vector<u8> bytes_;
};

}  // namespace mckpt::impl
