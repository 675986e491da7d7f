// The kernels in plain C++, and which kernel a processor gets.
#include "core/quantized/row_kernels.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

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

#if defined(__x86_64__)
// AVX2, in the processor and in the system, and F16C, which __builtin_cpu_supports() of clang 14 does not know.
bool has_avx2_and_f16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __builtin_cpu_supports("avx2") && __get_cpuid(1, &a, &b, &c, &d) && (c >> 29 & 1);
}
#endif

}  // namespace

Processor best_processor() {
#if defined(__x86_64__)
  static const bool has_avx2 = has_avx2_and_f16c();
  if (has_avx2) return Processor::kAvx2;
#endif
  return Processor::kAny;
}

RowKernel row_kernel(CodeFormat codes, bool nibbles, DType to, Processor processor) {
  RowKernel fast = processor == Processor::kAvx2 ? avx2_row_kernel(codes, nibbles, to) : nullptr;
  if (fast) return fast;
  return to == DType::kBF16  ? plain<DType::kBF16>(nibbles)
         : to == DType::kF16 ? plain<DType::kF16>(nibbles)
                             : plain<DType::kF32>(nibbles);
}

}  // namespace mckpt::impl
