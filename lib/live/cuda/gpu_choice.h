// Which rank takes which GPU.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

using GpuId = std::array<u8, 16>;  // the same in every process that sees the GPU

// For each rank, given the GPUs that each may use: the place of its own among them, the first that no earlier
// rank takes. So ranks of a host that see all its GPUs take them in order, and those to whom the launcher
// shows one each take that. Throws kBadGrid where none is left for a rank.
std::vector<i32> choose_gpus(std::span<const std::vector<GpuId>> usable);

}  // namespace mckpt::impl
