// The first line of a diff: how many tensors differ, how many are equal, and where the largest difference is.
//
//   3 of 291 tensors differ, 288 are bit-equal; the largest relative difference is 2.1e-3 in model.layers.3...
//   12 of 40 tensors differ (4 weights, 8 states of the optimizer), 28 are bit-equal; the largest relative difference
//   of the weights is 0.01 in w, of the optimizer 1.1 in exp_avg.w
#pragma once

#include <string>

#include "core/base/int.h"

namespace mckpt::impl {

struct Diff;

// The tensors of the two sides, counted by name.
struct DiffCounts {
  i64 values = 0, alike = 0, only_a = 0, only_b = 0, headers = 0, casts = 0, others = 0;
  i64 attributes = 0;   // tensors of which nothing but attributes differs
  i64 equal = 0;        // compared, and each bit is the same
  i64 equal_casts = 0;  // of two types, and each value is the same
  i64 unread = 0;       // some of their items could not be read, and the others are equal

  i64 tensors_differ() const { return values + only_a + only_b + headers + attributes; }
  i64 tensors() const { return equal + equal_casts + alike + unread + tensors_differ(); }
};

DiffCounts diff_counts(const Diff& diff);

std::string diff_verdict(const Diff& diff);

}  // namespace mckpt::impl
