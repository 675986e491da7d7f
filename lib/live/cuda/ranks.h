// DeviceRanks over GPUs: a communicator of NCCL, or nothing for a rank alone.
#pragma once

#include "live/device/device.h"

namespace mckpt::impl {

// Collective over `comm`, which is used to connect and not kept. Throws kModuleMissing if there are several
// ranks and no NCCL, and kRanksFailed. pre: the GPU was chosen.
std::unique_ptr<DeviceRanks> cuda_ranks(Comm& comm);

}  // namespace mckpt::impl
