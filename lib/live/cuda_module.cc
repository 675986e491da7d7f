// The cuda module: libtorch's CUDA side and the CUDA run time.
#include <c10/cuda/CUDAFunctions.h>
#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>

#include "runtime/module_abi.h"
#include "runtime/module_guard.h"

namespace mckpt {
namespace {

void check(cudaError_t code) {
  if (code != cudaSuccess) throw std::runtime_error(cudaGetErrorString(code));
}

// 13000 -> "13.0"
std::string spelled(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

const char* describe(MckptFactSink sink, void* context) {
  return guarded([&] {
    int runtime = 0, driver = 0;
    check(cudaRuntimeGetVersion(&runtime));
    check(cudaDriverGetVersion(&driver));  // 0 where there is no driver
    sink(context, "version", spelled(runtime).c_str());
    sink(context, "driver", driver == 0 ? "none" : spelled(driver).c_str());
    int devices = c10::cuda::device_count();
    sink(context, "devices", std::to_string(devices).c_str());
    for (int i = 0; i < devices; i++) {
      cudaDeviceProp properties{};
      check(cudaGetDeviceProperties(&properties, i));
      sink(context, ("device " + std::to_string(i)).c_str(), properties.name);
    }
  });
}

constexpr MckptModule kModule = {kMckptModuleAbi, sizeof(MckptModule), "cuda", describe, nullptr};

}  // namespace
}  // namespace mckpt

MCKPT_EXPORT_MODULE { return &mckpt::kModule; }
