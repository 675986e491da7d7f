// The kernels in plain C++, and which kernel a processor gets.
#include "core/quantized/row_kernels.h"

#include "core/quantized/row_code.h"

namespace mckpt::impl {
namespace {

template <DType kTo>
void plain_bytes(const RowStretch& row) {
  for_each_block(row, [&](i64 at, i64 count, float scale) { put_bytes<kTo>(row, at, at + count, scale); });
}

template <DType kTo>
void plain_nibbles(const RowStretch& row) {
  for_each_block(row, [&](i64 at, i64 count, float scale) { put_nibbles<kTo>(row, at, at + count, scale); });
}

template <DType kTo>
RowKernel plain(bool nibbles) {
  return nibbles ? plain_nibbles<kTo> : plain_bytes<kTo>;
}

}  // namespace

RowKernel row_kernel(CodeFormat codes, bool nibbles, DType to, Processor processor) {
  RowKernel fast = processor == Processor::kAvx2 ? avx2_row_kernel(codes, nibbles, to) : nullptr;
  if (fast) return fast;
  return to == DType::kBF16  ? plain<DType::kBF16>(nibbles)
         : to == DType::kF16 ? plain<DType::kF16>(nibbles)
                             : plain<DType::kF32>(nibbles);
}

}  // namespace mckpt::impl
