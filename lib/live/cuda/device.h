// The GPU of this rank as a Device (live/device/device.h).
#pragma once

#include <memory>

namespace mckpt::impl {

class Comm;
class Device;

// Chooses the GPU, once in a process: of those that a rank may use, the first that no earlier rank has.
// Collective. Throws kModuleMissing if there is no module, driver or GPU; kBadGrid if there are more
// ranks than GPUs; kRanksFailed.
std::unique_ptr<Device> cuda_device(Comm& world);

}  // namespace mckpt::impl
