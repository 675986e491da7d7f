// The inner loops of quantisation, over a piece of one row.
#pragma once

#include "core/base/processor.h"
#include "core/quantized/quantize.h"

namespace mckpt::impl {

// Values are widened to fp32 in pieces of this many, which stay in the first cache; even, as two nibbles
// share a byte.
inline constexpr i64 kPieceItems = 256;

// Values [column, column + items) of a row as fp32. pre: items <= kPieceItems.
void widen_values(const RowsOfValues& values, i64 row, i64 column, i64 items, float* to);

// The largest magnitude of a part of a row; infinite where one value is infinite or NaN.
float amax_of(const RowsOfValues& values, i64 row, i64 column, i64 columns);

// The nearest codes of values[i] / scale, a byte each, and what they lose. pre: the scale is not zero. The
// second form is for nibbles, which are not packed yet.
QuantLosses e4m3_codes(Processor processor, const float* values, i64 items, float scale, u8* codes);
QuantLosses e2m1_codes(Processor processor, const float* values, i64 items, float scale, u8* codes);

}  // namespace mckpt::impl
