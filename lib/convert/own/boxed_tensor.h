// A tensor that is made of boxes of a store's tensors, as the rearrangements of a tensor make it: parts of a
// dimension, dimensions that change places, tensors that are joined. Nothing is read.
//
//   gate_up [4, 20, 12]                        whole()
//   up      [4, 10, 12]                        .every(1, {10, 10})
//   up of expert 2      [10, 12]               .at(0, 2)
//   its transpose       [12, 10]               .swapped(0, 1)
#pragma once

#include <span>
#include <vector>

#include "convert/views/piece_store.h"

namespace mckpt::impl {

// A value. Dimensions are inside the rank, and indices inside the dimension; pieces have axes, or are zeros.
struct BoxedTensor {
  std::vector<i64> dims;
  std::vector<StorePiece> pieces;

  // pre: it is not a scalar.
  static BoxedTensor whole(const Store& store, i64 tensor);

  // The indices first, first + step, ... of a dimension, `count` of them.
  struct Indices {
    i64 first, count, step = 1;
  };
  BoxedTensor every(std::size_t dim, Indices indices) const;
  // One index of a dimension, which the result does not have.
  BoxedTensor at(std::size_t dim, i64 index) const;
  BoxedTensor swapped(std::size_t one, std::size_t other) const;
  // In every block of `block` indices the second half comes between the first: 0 1 2 3 4 5 become 0 3 1 4 2
  // 5. pre: blocks are even and divide the dimension.
  BoxedTensor interleaved(std::size_t dim, i64 block) const;

  // Puts the other tensor behind this one, along a dimension. pre: the others are equal.
  void append(std::size_t dim, BoxedTensor other);
  // Puts rows of zeros behind. pre: there is a piece.
  void append_zeros(i64 rows);
};

}  // namespace mckpt::impl
