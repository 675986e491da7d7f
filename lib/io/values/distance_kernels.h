// The inner loops of distances that are written with the processor's vectors.
#pragma once

#include "core/items/dtype.h"
#include "io/values/distance.h"

namespace mckpt::impl {

// pre: `numbers` is a multiple of kDistanceLanes.
using DistanceKernel = ValueDistance (*)(const u8* a, const u8* b, i64 numbers, const Tolerance& within);
inline constexpr i64 kDistanceLanes = 8;

// For Processor::kAvx2; null: there is none for the type.
DistanceKernel avx2_distance_kernel(DType dtype);

}  // namespace mckpt::impl
