// Makes batches for the scatter kernel (live/cuda/scatter_batch.h) from copies between places of a device's
// memory. The work is done on the host and is tested there.
//
//   ItemCopy: 3 rows of 50 bf16 items, stride 64     -->  kCopy4: 25 units of 4 bytes a row, 75 units, 1 tile
#pragma once

#include <functional>
#include <span>

#include "live/device/device.h"
#include "live/cuda/scatter_batch.h"

namespace mckpt::impl {

// The numbers by which the kernel divides by d. pre: 0 < d < 2^31
ScatterDivisor scatter_divisor(i64 d);

// Calls `launch` with one batch after the other; each but the last has kScatterCopies copies. Copies of
// most_units units or more are cut into several, because the kernel counts in 31 bits. pre: as for
// Lane::scatter.
inline constexpr i64 kScatterMostUnits = i64{1} << 31;
void for_each_batch(std::span<const ItemCopy> copies, const std::function<void(const ScatterBatch&)>& launch,
                    i64 most_units = kScatterMostUnits);

}  // namespace mckpt::impl
