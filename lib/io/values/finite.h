// NaN and infinities among the values of a tensor, and its largest finite value, found at the speed of
// memory: `verify` and `stats` look at every value of a checkpoint.
//
//   NonFinite found;
//   scan_non_finite(DType::kBF16, first_mebibyte, 0, found);
//   scan_non_finite(DType::kBF16, next_mebibyte, 524288, found);      found.first_nan: index in the tensor
//   found.loudest.code == 0                                           every value is zero
#pragma once

#include <span>
#include <utility>

#include "io/values/loudest.h"

namespace mckpt::impl {

// Counts and first places. Parts of a tensor may be scanned apart and merged in their order.
struct NonFinite {
  i64 nans = 0, infinities = 0;
  i64 first_nan = -1, first_infinity = -1;  // counted in numbers (element_form) of the tensor; -1: none
  Loudest loudest;                          // the largest finite value

  i64 count() const { return nans + infinities; }
  void merge(const NonFinite& later);  // adds what was found in a later stretch
};

// Looks at a stretch of whole numbers, the first of which has index `at` in the tensor, and adds to `found`.
// A type without NaN and infinities is only searched for a set bit.
void scan_non_finite(DType dtype, std::span<const u8> bytes, i64 at, NonFinite& found);

// The same for bytes that begin at byte `at` of the tensor, without the items of `left_out`: stretches,
// ascending.
void scan_outside(std::span<const std::pair<i64, i64>> left_out, DType dtype, std::span<const u8> bytes,
                  i64 at, NonFinite& found);

}  // namespace mckpt::impl
