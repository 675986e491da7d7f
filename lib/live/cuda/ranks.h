// DeviceRanks over GPUs: a communicator of NCCL, or nothing for a rank alone.
#pragma once

#include <memory>

namespace mckpt::impl {

class Comm;
class DeviceRanks;

// Collective over `comm`, which is used to connect and not kept. Throws kModuleMissing if there are several
// ranks and no NCCL, and kRanksFailed. `gpu`: this rank's, of the cuda module.
std::unique_ptr<DeviceRanks> cuda_ranks(Comm& comm, void* gpu);

}  // namespace mckpt::impl
