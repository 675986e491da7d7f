// Finds the first number that is small enough, from a position on, in logarithmic time; numbers can be
// removed. Greedy packing needs nothing else.
//
//   numbers 5 3 8 2       find(0, 4) = 1 (the 3)     find(2, 4) = 3 (the 2)     find(2, 1) = kNone
//       2                 each node of the tree is the least below it:
//     3   2               a subtree whose least number is too large is skipped as a whole
//    5 3 8 2
#pragma once

#include <algorithm>
#include <bit>
#include <limits>
#include <span>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

// Megatron-FSDP's packing repeatedly takes the first parameter that fits. The tree finds it without a walk
// over all of them, which matters for models of 100,000 parameters.
class FirstFit {
 public:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  static constexpr i64 kAbsent = std::numeric_limits<i64>::max();  // fits nowhere

  // kAbsent is in the place of a removed number.
  explicit FirstFit(std::span<const i64> numbers)
      : leaves_(std::bit_ceil(numbers.size() + 1)), least_(2 * leaves_, kAbsent) {
    for (std::size_t i = 0; i < numbers.size(); i++) least_[leaves_ + i] = numbers[i];
    for (std::size_t node = leaves_ - 1; node > 0; node--) update(node);
  }

  // pre: from is at most the number of numbers, limit < kAbsent.
  std::size_t find(std::size_t from, i64 limit) const {
    std::size_t node = leaves_ + from;
    while (least_[node] > limit) {
      // Go to the subtree at the right: up from right children, then across. 0 is above the root.
      while (node & 1) node >>= 1;
      if (node == 0) return kNone;
      node++;
    }
    while (node < leaves_) node = 2 * node + (least_[2 * node] > limit);
    return node - leaves_;
  }

  // Removes the number at the position.
  void take(std::size_t position) {
    std::size_t node = leaves_ + position;
    least_[node] = kAbsent;
    while ((node >>= 1) > 0) update(node);
  }

 private:
  void update(std::size_t node) { least_[node] = std::min(least_[2 * node], least_[2 * node + 1]); }

  std::size_t leaves_;
  std::vector<i64> least_;  // a complete binary tree from node 1: each node the least below it
};

}  // namespace mckpt::impl
