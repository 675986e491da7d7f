// Grouped: the numbers 0 to n-1 in groups, in two arrays, whatever the number of groups:
//
//   group of 0..4: 2 0 2 2 0     -->     group 0: 1 4     group 1: -     group 2: 0 2 3
#pragma once

#include <span>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

// Made once by counting (two passes over the numbers), then constant. A group is a view of one array, so a
// million groups are two allocations and not a million vectors.
class Grouped {
 public:
  Grouped() = default;
  // The members of a group keep their order. pre: 0 <= group_of[i] < groups, or below 0: i is in no group.
  Grouped(std::span<const i32> group_of, i64 groups) : begin_(static_cast<std::size_t>(groups) + 1) {
    for (i32 g : group_of)
      if (g >= 0) begin_[g + 1]++;
    for (i64 g = 0; g < groups; g++) begin_[g + 1] += begin_[g];
    members_.resize(static_cast<std::size_t>(begin_.back()));
    std::vector<i64> next(begin_.begin(), begin_.end() - 1);
    for (i32 i = 0; i < static_cast<i32>(group_of.size()); i++)
      if (i32 g = group_of[i]; g >= 0) members_[next[g]++] = i;
  }

  i64 size() const { return std::ssize(begin_) - 1; }
  std::span<const i32> operator[](i64 group) const {
    return {members_.data() + begin_[group], static_cast<std::size_t>(begin_[group + 1] - begin_[group])};
  }

 private:
  std::vector<i64> begin_ = {0};  // of each group in members_, and the end
  std::vector<i32> members_;
};

}  // namespace mckpt::impl
