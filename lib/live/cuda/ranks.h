// DeviceRanks over GPUs: a communicator of NCCL.
#pragma once

#include <memory>

namespace mckpt::impl {

class Comm;
class DeviceRanks;

// Collective over `comm`. Throws kModuleMissing where there are several ranks and no NCCL, and kRanksFailed.
// pre: the GPU has been chosen.
std::unique_ptr<DeviceRanks> cuda_ranks(Comm& comm);

}  // namespace mckpt::impl
