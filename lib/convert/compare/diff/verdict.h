// The first line of a diff: how many tensors differ, how many are equal, and where the largest difference is.
//
//   3 of 291 tensors differ, 288 are bit-equal; the largest relative difference is 2.1e-3 in model.layers.3...
#pragma once

#include <string>

#include "core/base/int.h"

namespace mckpt::impl {

struct Diff;

// What the two sides have of tensors, counted by name.
struct DiffCounts {
  i64 values = 0, alike = 0, only_a = 0, only_b = 0, headers = 0, casts = 0, others = 0;
  i64 equal = 0;        // compared, and each bit is the same, perhaps after a cast
  i64 equal_casts = 0;  // of these, after a cast

  i64 tensors_differ() const { return values + only_a + only_b + headers; }
};

DiffCounts diff_counts(const Diff& diff);

std::string diff_verdict(const Diff& diff);

}  // namespace mckpt::impl
