// StatsList keeps the statistics of very many tensors in few bytes: `stats` prints nothing before it has read
// all.
//
//   numbers 4   finite 4   zeros 1   no NaN   no infinity   four bins 1 0 1 2     a byte for each of these
//   min, max, mean, deviation, sum of squares                                     as they are, if a number is finite
#pragma once

#include <cstddef>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

struct TensorStats;

class StatsList {
 public:
  void add(const TensorStats& stats);
  // The i-th that was added, without non_finite.loudest.
  TensorStats operator[](std::size_t i) const;

 private:
  static constexpr std::size_t kInBlock = 1 << 12;
  // A list that grows as a whole would be in memory twice while it moves.
  struct Block {
    std::vector<u32> begins;
    std::vector<u8> bytes;
  };
  std::vector<Block> blocks_;
};

}  // namespace mckpt::impl
