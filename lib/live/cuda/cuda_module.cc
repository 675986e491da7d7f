// The cuda module: NVIDIA's driver, and NVRTC, which compiles the kernel. This file has the module's entry
// and its description of itself.
#include <string>

#include "live/cuda/functions.h"
#include "runtime/modules/module_abi.h"
#include "runtime/modules/module_guard.h"

namespace mckpt::impl {
namespace {

// 13000 -> "13.0"
std::string spelled(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

const char* describe(MckptFactSink sink, void* context) {
  return guarded([&] {
    CudaFacts facts = look_at_cuda();
    sink(context, "version", facts.driver == 0 ? "none" : spelled(facts.driver).c_str());
    sink(context, "compiler", facts.compiler.empty() ? "none" : facts.compiler.c_str());
    sink(context, "driver", facts.driver == 0 ? "none" : spelled(facts.driver).c_str());
    sink(context, "devices", std::to_string(facts.devices.size()).c_str());
    for (std::size_t i = 0; i < facts.devices.size(); i++)
      sink(context, ("device " + std::to_string(i)).c_str(), facts.devices[i].c_str());
  });
}

constexpr MckptModule kModule = {kMckptModuleAbi, sizeof(MckptModule), "cuda", describe, &kCudaFunctions};

}  // namespace
}  // namespace mckpt::impl

MCKPT_EXPORT_MODULE { return &mckpt::impl::kModule; }
