// Reading the values that are quantised.
#pragma once

#include "core/quantized/quantize.h"

namespace mckpt::impl {

// Value [row, column] as fp32.
float value_at(const ValueRows& values, i64 row, i64 column);

// The largest magnitude of a part of a row; infinite where one value is infinite or NaN.
float amax_of(const ValueRows& values, i64 row, i64 column, i64 columns);

}  // namespace mckpt::impl
