// Makes batches for the scatter kernel (live/cuda/scatter_batch.h) of copies between places of a device's memory.
#pragma once

#include <functional>
#include <span>

#include "core/base/int.h"
#include "live/cuda/scatter_batch.h"

namespace mckpt::impl {

struct ItemCopy;

ScatterDivisor scatter_divisor(i64 d);  // pre: 0 < d < 2^31

// Calls `launch` with every batch, full ones first. Copies of most_units units or more are cut: the kernel
// counts in 31 bits. pre: that of Lane::scatter.
inline constexpr i64 kScatterMostUnits = i64{1} << 31;
void for_each_batch(std::span<const ItemCopy> copies, const std::function<void(const ScatterBatch&)>& launch,
                    i64 most_units = kScatterMostUnits);

}  // namespace mckpt::impl
