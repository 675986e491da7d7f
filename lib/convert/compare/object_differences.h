// What two checkpoints hold besides tensors, value by value: the args, the iteration, settings of the
// optimizer, random states.
#pragma once

#include <string>
#include <vector>

#include "io/verify/verify.h"

namespace mckpt::impl {

struct ObjectDifferences {
  i64 objects = 0;  // of which all was compared
  i64 unread = 0;   // that a finding reports
  std::vector<Finding> findings;
  std::vector<Difference> differences;  // the values that the findings report
  // Values of the args that say the grid of a run, and differ: every conversion writes its own.
  std::vector<std::string> of_grid;
  // That PATH has another iteration, which its folder names: it was written as that.
  bool renumbered = false;
  // Objects that PATH alone has, or SRC, because one of them had to be made for another format.
  std::vector<std::string> made;
};

// What `there` has in place of what a conversion of `source` carries over. A PieceStore has the objects that
// its names have a place for.
ObjectDifferences object_differences(const Store& there, const Store& source, int threads);

}  // namespace mckpt::impl
