// The GPU of this rank as a Device (live/device/device.h).
//
//   host with GPUs 0-3, ranks 0 and 1 see all of them:   rank 0 gets GPU 0, rank 1 gets GPU 1
#pragma once

#include <memory>
#include <span>
#include <string>

namespace mckpt::impl {

class Comm;
class Device;

// Collective, and called once in a process: chooses for each rank the first of its usable GPUs that no
// earlier rank got. Throws kModuleMissing if there is no module, driver or GPU; kBadGrid if there are more
// ranks than GPUs; kRanksFailed. `module_folders`: where the modules are looked for first
// (runtime/system/module_folders.h).
std::unique_ptr<Device> cuda_device(Comm& world, std::span<const std::string> module_folders = {});

}  // namespace mckpt::impl
