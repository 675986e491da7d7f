// CRC-32 sums of stretches of a file, and of all that is around them:
//
//   file          | header |   tensor 0   | padding |   tensor 1   |
//   sum_bytes              [ of these      ]
//   sum_outside   [--------]              [---------]               one sum, end to end
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "io/listing/row.h"

namespace mckpt::impl {

class ByteSource;

using SumProgress = std::function<void(i64 bytes)>;  // is called after each MiB, and may throw

// Continues the sum `before` over bytes [begin, end) of a file. Throws kReadFailed.
u32 sum_bytes(u32 before, const ByteSource& file, i64 begin, i64 end, const SumProgress& going_on = {});
// The same with reused memory.
u32 sum_bytes(u32 before, const ByteSource& file, i64 begin, i64 end, std::vector<u8>& window,
              const SumProgress& going_on);

// The sum of the first `bytes` bytes of a file without the bytes of the stretches. pre: the stretches are
// ascending, as they begin.
u32 sum_outside(std::span<const SummedStretch> stretches, const ByteSource& file, i64 bytes,
                const SumProgress& going_on = {});

}  // namespace mckpt::impl
