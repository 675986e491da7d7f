// NaN and infinities among the values of a tensor, looked for at the speed of memory.
#pragma once

#include <span>

#include "core/base/int.h"

namespace mckpt::impl {

enum class DType : u8;

struct NonFinite {
  i64 nans = 0, infinities = 0;
  i64 first_nan = -1, first_infinity = -1;  // numbers (element_form) counted from the first of the tensor

  i64 count() const { return nans + infinities; }
  void merge(const NonFinite& later);  // what was found in a later stretch
};

// Whether the type can hold a NaN or an infinity at all.
bool may_be_non_finite(DType dtype);

// Looks at a stretch of whole numbers; `at` is the index of its first. Adds to what was found before.
void scan_non_finite(DType dtype, std::span<const u8> bytes, i64 at, NonFinite& found);

}  // namespace mckpt::impl
