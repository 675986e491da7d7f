// Loads the two libraries and looks every function up by its name. A library stays loaded.
#include "live/cuda/driver.h"

#include <dlfcn.h>

#include <mutex>
#include <stdexcept>
#include <string>

namespace mckpt::impl {
namespace {

template <typename Function>
void look_up(void* library, const char* name, Function& to) {
  to = reinterpret_cast<Function>(dlsym(library, name));
  if (!to) throw std::runtime_error(std::string("the installed version has no function ") + name);
}

void* opened(const char* name) { return dlopen(name, RTLD_NOW | RTLD_LOCAL); }

CudaDriver load_driver() {
  void* library = opened("libcuda.so.1");
  if (!library) throw std::runtime_error("there is no NVIDIA driver (libcuda.so.1)");
  CudaDriver d{};
  auto find = [&](const char* name, auto& to) { look_up(library, name, to); };
  find("cuInit", d.init);
  find("cuDriverGetVersion", d.version);
  find("cuGetErrorName", d.error_name);
  find("cuGetErrorString", d.error_text);
  find("cuDeviceGetCount", d.device_count);
  find("cuDeviceGet", d.device_at);
  find("cuDeviceGetName", d.device_name);
  find("cuDeviceGetUuid_v2", d.device_uuid);
  find("cuDeviceGetAttribute", d.device_attribute);
  find("cuDevicePrimaryCtxRetain", d.retain_primary);
  find("cuDevicePrimaryCtxSetFlags_v2", d.primary_flags);
  find("cuCtxPushCurrent_v2", d.push_context);
  find("cuCtxPopCurrent_v2", d.pop_context);
  find("cuCtxSetCurrent", d.set_context);
  find("cuMemGetInfo_v2", d.mem_info);
  find("cuMemAlloc_v2", d.mem_alloc);
  find("cuMemFree_v2", d.mem_free);
  find("cuMemHostRegister_v2", d.host_register);
  find("cuMemHostUnregister", d.host_unregister);
  find("cuStreamCreate", d.stream_create);
  find("cuStreamDestroy_v2", d.stream_destroy);
  find("cuStreamSynchronize", d.stream_synchronize);
  find("cuStreamQuery", d.stream_query);
  find("cuStreamWaitEvent", d.stream_wait_event);
  find("cuEventCreate", d.event_create);
  find("cuEventDestroy_v2", d.event_destroy);
  find("cuEventRecord", d.event_record);
  find("cuEventSynchronize", d.event_synchronize);
  find("cuMemcpyAsync", d.memcpy_async);
  find("cuMemsetD8Async", d.memset_async);
  find("cuModuleLoadData", d.module_load);
  find("cuModuleGetFunction", d.module_function);
  find("cuFuncGetAttribute", d.function_attribute);
  find("cuLaunchKernel", d.launch);
  if (int result = d.init(0); result != kCuSuccess && result != kCuNoDevice) {
    const char* text = nullptr;
    d.error_text(result, &text);
    throw std::runtime_error(std::string("the NVIDIA driver does not start: ") + (text ? text : "no reason"));
  }
  return d;
}

NvrtcLibrary load_nvrtc() {
  int version = 0;
  check_driver(driver().version(&version));
  // Code of a newer compiler than the driver's version may not load.
  const char* newer = "libnvrtc.so.13";
  const char* older = "libnvrtc.so.12";
  void* library = version >= 13000 ? opened(newer) : opened(older);
  if (!library && version >= 13000) library = opened(older);
  if (!library) library = opened("libnvrtc.so");
  if (!library)
    throw std::runtime_error(
        std::string("the compiler of kernels was not found: ") + (version >= 13000 ? newer : older) +
        " (CUDA's NVRTC, which torch for GPUs brings along; pip install nvidia-cuda-nvrtc)");
  NvrtcLibrary n{};
  auto find = [&](const char* name, auto& to) { look_up(library, name, to); };
  find("nvrtcVersion", n.version);
  find("nvrtcGetErrorString", n.error_text);
  find("nvrtcGetNumSupportedArchs", n.known_count);
  find("nvrtcGetSupportedArchs", n.known);
  find("nvrtcCreateProgram", n.create);
  find("nvrtcDestroyProgram", n.destroy);
  find("nvrtcCompileProgram", n.compile);
  find("nvrtcGetProgramLogSize", n.log_size);
  find("nvrtcGetProgramLog", n.log);
  find("nvrtcGetCUBINSize", n.cubin_size);
  find("nvrtcGetCUBIN", n.cubin);
  find("nvrtcGetPTXSize", n.ptx_size);
  find("nvrtcGetPTX", n.ptx);
  return n;
}

}  // namespace

// A static that throws while it is made is made again by the next call.
const CudaDriver& driver() {
  static const CudaDriver loaded = load_driver();
  return loaded;
}

const NvrtcLibrary& nvrtc() {
  static const NvrtcLibrary loaded = load_nvrtc();
  return loaded;
}

void check_driver(int result) {
  if (result == kCuSuccess) return;
  const char *text = nullptr, *name = nullptr;
  driver().error_text(result, &text);
  driver().error_name(result, &name);
  throw std::runtime_error(std::string(text ? text : "unknown error") + " (" +
                           (name ? name : std::to_string(result)) + ")");
}

}  // namespace mckpt::impl
