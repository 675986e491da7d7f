// The torch module: libtorch on the CPU. It is linked to libtorch_cpu and libc10 only, and not to libtorch,
// which loads CUDA. Its description fails if it was built with another version of libtorch than the one that
// is loaded.
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <torch/version.h>

#include <stdexcept>
#include <string>

#include "live/device/torch_tensors.h"
#include "runtime/modules/module_abi.h"
#include "runtime/modules/module_guard.h"

namespace mckpt::impl {
namespace {

// The version of the loaded libtorch, from the list of its build settings: "..., TORCH_VERSION=2.11.0, ...".
std::string loaded_version() {
  std::string settings = at::show_config(), key = "TORCH_VERSION=";
  std::size_t begin = settings.find(key);
  if (begin == std::string::npos) throw std::runtime_error("libtorch does not report its version");
  begin += key.size();
  return settings.substr(begin, settings.find_first_of(", \n", begin) - begin);
}

const char* describe(MckptFactSink sink, void* context) {
  return guarded([&] {
    std::string version = loaded_version();
    if (version != TORCH_VERSION)
      throw std::runtime_error("built with libtorch " TORCH_VERSION ", but this is libtorch " + version);
    sink(context, "version", version.c_str());
    sink(context, "threads", std::to_string(at::get_num_threads()).c_str());
  });
}

constexpr MckptModule kModule = {kMckptModuleAbi, sizeof(MckptModule), "torch", describe, &kTensorFunctions};

}  // namespace
}  // namespace mckpt::impl

MCKPT_EXPORT_MODULE { return &mckpt::impl::kModule; }
