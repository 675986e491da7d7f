// Stored scales and zero points as numbers.
#pragma once

#include "core/base/int.h"
#include "core/items/dtype.h"
#include "core/quantized/layout.h"

namespace mckpt::impl {

// The scale of a block as values are multiplied with it, its tensor's scale included. `stored` is the scale's
// first byte. A double: the byte 255 of MXFP4 is 2^128 in gpt-oss's own code, and NaN everywhere else.
double block_scale(const QuantLayout& layout, const u8* stored);

// A stored scale by itself; of E8M0, 255 is NaN.
double scale_value(DType scales, const u8* stored);

// The zero point of a group, as the codes count. `words` is the row of words that holds the zero points of
// `first_row`.
int zero_point_at(const QuantLayout& layout, const u8* words, i64 first_row, i64 row, i64 group);

// Scales as kernels multiply with them: in fp32, and for MXFP4 half of each, because its kernels double the
// codes' values instead.
void widen_scales(const QuantLayout& layout, const u8* stored, i64 count, float* scales);
bool scales_are_halved(const QuantLayout& layout);

}  // namespace mckpt::impl
