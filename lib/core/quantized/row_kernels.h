// The inner loops of dequantisation: a stretch of one row, whose scales are fp32 already. Each is written
// once in plain C++ and once with the processor's vectors; all give the same bits.
//
//   codes    |..ab|cdef|gh..|     block_columns 4, skipped 2, items 8
//   scales   | s0 | s1 | s2 |
#pragma once

#include <array>

#include "core/base/int.h"
#include "core/base/processor.h"
#include "core/items/dtype.h"
#include "core/quantized/layout.h"

namespace mckpt::impl {

// The values of codes before they are scaled: 256 of codes of a byte, 16 of nibbles.
using CodeLevels = std::array<float, 256>;

// The values of 16 nibbles under one scale, in a type of 16 bits, their lower bytes apart from their upper
// ones: what a shuffle of bytes looks up. For MXFP4, whose scales are a byte, there are 256 such tables.
struct NibbleValues {
  std::array<u8, 16> lower, upper;
};
using ScaleTables = std::array<NibbleValues, 256>;

struct RowStretch {
  const u8* codes = nullptr;  // the byte that has the first code
  bool odd = false;           // nibbles: the first code is in the byte's upper half
  i64 items = 0;
  i64 skipped = 0;  // columns of the first block that are before the first code
  i64 block_columns = 1;
  const float* scales = nullptr;  // one for each block
  const CodeLevels* levels = nullptr;
  const u8* scale_codes = nullptr;      // with tables, instead of `scales`: the stored byte of each block
  const ScaleTables* tables = nullptr;  // by that byte
  u8* out = nullptr;
};
using RowKernel = void (*)(const RowStretch&);

// pre: `to` is a type of values. Codes are a byte each, or nibbles (kE2M1, kPackedInt of 4 bits), where
// block_columns is even or the row is one block. The processor has to have what is named.
RowKernel row_kernel(CodeFormat codes, bool nibbles, DType to, Processor processor);

// For Processor::kAvx2; null: there is no such kernel.
RowKernel avx2_row_kernel(CodeFormat codes, bool nibbles, DType to);
// For nibbles with tables, on Processor::kAvx2.
RowKernel avx2_table_kernel();

}  // namespace mckpt::impl
