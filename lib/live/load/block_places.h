// BlockPlaces: gives the tensors of a TensorLoad their places in blocks of device memory.
#pragma once

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "live/load/tensor_load.h"

namespace mckpt::impl {

class BlockPlaces {
 public:
  // Few enough allocations that their number does not matter, small enough that a model in part leaves no
  // large rest.
  static constexpr i64 kBlockBytes = i64{1} << 30;
  static constexpr i64 kAlignment = 256;  // what a GPU's allocations have

  explicit BlockPlaces(TensorLoad& load) : load_(load) {}

  // Adds a tensor behind the last one, or in a new block if it does not fit there. A tensor that is larger
  // than a block has one of its own size.
  const TensorLoad::Tensor& add(std::string name, DType dtype, Shape shape, i64 bytes) {
    i32 block = -1;
    i64 offset = 0;
    if (bytes > 0) {
      std::vector<i64>& ends = load_.block_bytes;
      if (!ends.empty()) offset = round_up(ends.back(), kAlignment, "the memory of a tensor");
      if (ends.empty() || offset + bytes > kBlockBytes) ends.push_back(0), offset = 0;
      ends.back() = offset + bytes;
      block = static_cast<i32>(ends.size()) - 1;
      load_.bytes += bytes;
    }
    load_.tensors.push_back({std::move(name), dtype, std::move(shape), bytes, block, offset});
    return load_.tensors.back();
  }

 private:
  TensorLoad& load_;
};

}  // namespace mckpt::impl
