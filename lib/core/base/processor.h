// The vector instructions of the processor, for the few loops that are written with them besides plain C++.
#pragma once

#include "core/base/int.h"

// In front of a plain loop: the compiler may use the vectors of AVX2 for it. best_processor() has to have
// them.
#if defined(__x86_64__)
#define MCKPT_WITH_AVX2 __attribute__((target("avx2")))
#else
#define MCKPT_WITH_AVX2
#endif

namespace mckpt::impl {

// kAvx2: AVX2, FMA, F16C and POPCNT, in the processor and in the system.
enum class Processor : u8 { kAny, kAvx2 };
Processor best_processor();

}  // namespace mckpt::impl
