// The two ways to values, which tests compare: one by one, by the rule alone, which also does the work where
// there is no kernel; and with the kernels of a processor.
#pragma once

#include "core/quantized/dequantize.h"
#include "core/quantized/row_kernels.h"

namespace mckpt::impl {

// As dequantize().
void dequantize_plainly(const QuantLayout& layout, const ValueTile& tile, const StoredBytes& stored, DType to,
                        u8* out, i64 out_row_bytes);

void dequantize_on(Processor processor, const QuantLayout& layout, const ValueTile& tile,
                   const StoredBytes& stored, DType to, u8* out, i64 out_row_bytes);

}  // namespace mckpt::impl
