// GPUs as Devices (live/device/device.h): this rank's, or one by its number.
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

// GPU `number` of those that this process may use. A process may open several GPUs, and each of them several
// times. `with_kernel`: the caller is going to call scatter(), so the kernel is compiled while the GPU is
// opened. Throws kModuleMissing if the module, the driver or a GPU of this number is missing, kRanksFailed if
// the GPU cannot be used.
std::unique_ptr<Device> open_gpu(int number, bool with_kernel,
                                 std::span<const std::string> module_folders = {});

}  // namespace mckpt::impl
