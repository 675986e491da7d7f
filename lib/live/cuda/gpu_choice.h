// Which rank gets which GPU: a pure function of what each rank may use, so that tests need no GPU.
//
//   rank 0 sees A B    rank 1 sees A B    rank 2 sees C      -->  places 0, 1, 0: GPUs A, B, C
//   rank 0 sees A      rank 1 sees B      (one each)         -->  places 0, 0
#pragma once

#include <array>
#include <span>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

using GpuId = std::array<u8, 16>;  // the same in every process that sees the GPU

// Returns for each rank the place of its GPU among the GPUs that it may use: the first that no earlier rank
// takes. Ranks of a host that see all its GPUs take them in order, and ranks to which the launcher shows one
// GPU each take that one. Throws kBadGrid if no GPU is left for a rank.
std::vector<i32> choose_gpus(std::span<const std::vector<GpuId>> usable);

}  // namespace mckpt::impl
