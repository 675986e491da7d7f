// Asks the processor once, by cpuid; other machines than x86-64 have none of these vectors.
#include "core/base/processor.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace mckpt::impl {
namespace {

#if defined(__x86_64__)
// __builtin_cpu_supports() of clang 14 does not know F16C.
bool has_avx2() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("popcnt") && __get_cpuid(1, &a, &b, &c, &d) && (c >> 29 & 1);
}
#endif

}  // namespace

Processor best_processor() {
#if defined(__x86_64__)
  static const bool avx2 = has_avx2();
  if (avx2) return Processor::kAvx2;
#endif
  return Processor::kAny;
}

}  // namespace mckpt::impl
