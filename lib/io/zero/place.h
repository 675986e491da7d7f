// Places in the files of DeepSpeed ZeRO, and the weights that a save has twice: training computes with the
// copies in `module` and in the files of experts, and steps with the float32 parts of the optimizer.
#pragma once

#include <string>

#include "core/base/int.h"

namespace mckpt::impl {

// A part of a column: a row of the table of a file; nothing if the file is not there, or has no such row.
struct ZeroPlace {
  i32 file = -1;
  i64 row = -1;
  bool is_there() const { return file >= 0 && row >= 0; }
};

// A copy is beside the part that its parameter has in the optimizer. `of`: that parameter, by its name in the
// store.
struct ZeroModuleCopy {
  std::string name, of;
  i64 layout, column;
};

}  // namespace mckpt::impl
