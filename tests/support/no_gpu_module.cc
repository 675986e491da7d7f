// A libmckpt_cuda.so that finds no GPU, or no driver where WITHOUT_DRIVER is set in the environment.
#include <cstdlib>

#include "live/cuda/cuda_table.h"
#include "runtime/modules/module_abi.h"

namespace {

const char* describe(MckptFactSink sink, void* context) {
  sink(context, "version", "0");
  return nullptr;
}

const char* devices(std::int32_t* count) {
  *count = 0;
  return std::getenv("WITHOUT_DRIVER") ? "there is no driver" : nullptr;
}

constexpr MckptCudaTable table() {
  MckptCudaTable t{};
  t.struct_size = sizeof(MckptCudaTable), t.devices = devices;
  return t;
}
constexpr MckptCudaTable kTable = table();
constexpr MckptModule kModule = {kMckptModuleAbi, sizeof(MckptModule), "cuda", describe, &kTable};

}  // namespace

MCKPT_EXPORT_MODULE { return &kModule; }
