// Items of examples, and the list of each file of them.
#pragma once

#include <vector>

#include "mappings/picture/picture.h"

namespace mckpt::impl {

// Rows [first, first + count) of a source of `columns` columns, repeated `times` times, `step` rows apart.
inline ItemRun rows(i32 slot, i64 columns, i64 first, i64 count, i64 step = 0, i64 times = 1) {
  return {slot, first * columns, count * columns, {step * columns, times}, {}};
}

// Gated delta nets and Mamba.
std::vector<RuleExample> state_space_examples();

}  // namespace mckpt::impl
