// MckptCudaTable over the CUDA run time. Every function sets the chosen device for its thread, because CUDA
// remembers it thread by thread, and is guarded, so that errors become texts. Lanes are streams that do not
// wait for CUDA's default stream; threads that wait for a lane sleep until the GPU's interrupt.
#include "live/cuda/functions.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>

#include "live/cuda/kernel.h"
#include "live/cuda/scatter_batch.h"
#include "runtime/modules/module_guard.h"

namespace mckpt::impl {
namespace {

void check_cuda(cudaError_t code) {
  if (code == cudaSuccess) return;
  cudaGetLastError();  // clears the error, so that the next call does not return it again
  throw std::runtime_error(std::string(cudaGetErrorString(code)) + " (" + cudaGetErrorName(code) + ")");
}

int driver_version() {  // 0: there is none
  int driver = 0;
  check_cuda(cudaDriverGetVersion(&driver));
  return driver;
}

// The number of GPUs; 0 if there are none. Throws for other errors.
int device_count() {
  int count = 0;
  cudaError_t code = cudaGetDeviceCount(&count);
  if (code == cudaErrorNoDevice) return cudaGetLastError(), 0;
  check_cuda(code);
  return count;
}

// The GPU that was chosen, and the kernel for it: a future while it is being compiled, then a handle.
struct Chosen {
  std::atomic<int> device = -1;
  std::shared_future<std::string> code;
  std::once_flag loaded;
  cudaKernel_t kernel = nullptr;
};

Chosen& chosen() {
  static Chosen chosen;
  return chosen;
}

// Makes the chosen GPU the present device of this thread.
void use_device() {
  static thread_local int used = -1;
  int device = chosen().device;
  if (used == device) return;
  check_cuda(cudaSetDevice(device));
  used = device;
}

// Runs fn on the chosen device.
template <typename Fn>
const char* on_device(Fn&& fn) noexcept {
  return guarded([&] {
    use_device();
    fn();
  });
}

// A lane: a stream, and an event for waiting.
struct GpuStream {
  cudaStream_t stream = nullptr;
  cudaEvent_t reached = nullptr;  // recorded anew by each wait and each follow
};

GpuStream& lane_at(void* lane) { return *static_cast<GpuStream*>(lane); }

const char* devices(std::int32_t* count) {
  return guarded([&] {
    if (driver_version() == 0) throw std::runtime_error("there is no NVIDIA driver (libcuda.so.1)");
    *count = device_count();
  });
}

const char* id(std::int32_t device, unsigned char* id) {
  return guarded([&] {
    cudaDeviceProp properties{};
    check_cuda(cudaGetDeviceProperties(&properties, device));
    static_assert(sizeof properties.uuid == kMckptGpuIdBytes);
    std::memcpy(id, &properties.uuid, kMckptGpuIdBytes);
  });
}

// The kernel is compiled in a thread of its own while the context of the GPU is made.
const char* choose(std::int32_t device) {
  return guarded([&] {
    int major = 0, minor = 0;
    check_cuda(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
    check_cuda(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device));
    // Compiled while the context is made. Threads that wait for the GPU sleep.
    chosen().code = compile_scatter_kernel(10 * major + minor);
    check_cuda(cudaInitDevice(device, cudaDeviceScheduleBlockingSync, cudaInitDeviceFlagsAreValid));
    chosen().device = device;
    use_device();
  });
}

const char* use_here() {
  return on_device([] {});
}

const char* facts(MckptGpuFacts* out) {
  return on_device([&] {
    cudaDeviceProp properties{};
    check_cuda(cudaGetDeviceProperties(&properties, chosen().device));
    static_assert(sizeof properties.name <= sizeof out->name);
    std::memcpy(out->name, properties.name, sizeof properties.name);
    std::size_t free = 0, total = 0;
    check_cuda(cudaMemGetInfo(&free, &total));
    out->free_bytes = static_cast<std::int64_t>(free);
    out->total_bytes = static_cast<std::int64_t>(total);
  });
}

// False if CUDA has not enough memory; other errors are thrown.
bool granted(cudaError_t code) {
  if (code == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    return false;
  }
  check_cuda(code);
  return true;
}

const char* allocate(std::int64_t bytes, void** data) {
  return on_device([&] {
    if (!granted(cudaMalloc(data, static_cast<std::size_t>(bytes)))) *data = nullptr;
  });
}

const char* release(void* data) {
  return on_device([&] { check_cuda(cudaFree(data)); });
}

const char* register_host(void* data, std::int64_t bytes, bool* pinned) {
  return on_device([&] {
    *pinned = granted(cudaHostRegister(data, static_cast<std::size_t>(bytes), cudaHostRegisterPortable));
  });
}

const char* unregister_host(void* data) {
  return on_device([&] { check_cuda(cudaHostUnregister(data)); });
}

// Loads the kernel onto the GPU, which CUDA does when the kernel's attributes are first asked for. Loading
// may wait for all running kernels, and a kernel of NCCL may wait for another rank; so it is done before the
// first lane exists.
void load_kernel() {
  cudaLibrary_t library = nullptr;
  check_cuda(
      cudaLibraryLoadData(&library, chosen().code.get().data(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  check_cuda(cudaLibraryGetKernel(&chosen().kernel, library, "mckpt_scatter"));
  cudaFuncAttributes attributes{};
  check_cuda(cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(chosen().kernel)));
}

const char* make_lane(void** lane, void** stream) {
  return on_device([&] {
    std::call_once(chosen().loaded, load_kernel);
    auto made = std::make_unique<GpuStream>();
    // A thread that waits for the event sleeps until the GPU's interrupt.
    check_cuda(cudaEventCreateWithFlags(&made->reached, cudaEventBlockingSync | cudaEventDisableTiming));
    check_cuda(cudaStreamCreateWithFlags(&made->stream, cudaStreamNonBlocking));
    *stream = made->stream;
    *lane = made.release();
  });
}

// Waits for a lane. Ending a sleep takes an interrupt, which is slow in a virtual machine, so a lane that is
// done already is not waited for.
void wait_for(GpuStream& lane) {
  if (cudaError_t code = cudaStreamQuery(lane.stream); code != cudaErrorNotReady) return check_cuda(code);
  check_cuda(cudaEventRecord(lane.reached, lane.stream));
  check_cuda(cudaEventSynchronize(lane.reached));
}

const char* release_lane(void* lane) {
  return on_device([&] {
    std::unique_ptr<GpuStream> owned(&lane_at(lane));
    // All three are called, also if the first one fails; the first error is thrown.
    cudaError_t waited = cudaStreamSynchronize(owned->stream);
    cudaError_t stream = cudaStreamDestroy(owned->stream);
    cudaError_t event = cudaEventDestroy(owned->reached);
    for (cudaError_t error : {waited, stream, event}) check_cuda(error);
  });
}

const char* copy(void* lane, const void* from, void* to, std::int64_t bytes) {
  return on_device([&] {
    check_cuda(
        cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDefault, lane_at(lane).stream));
  });
}

const char* zero(void* lane, void* at, std::int64_t bytes) {
  return on_device(
      [&] { check_cuda(cudaMemsetAsync(at, 0, static_cast<std::size_t>(bytes), lane_at(lane).stream)); });
}

const char* scatter(void* lane, const ScatterBatch* batch) {
  return on_device([&] {
    void* arguments[] = {const_cast<ScatterBatch*>(batch)};
    check_cuda(cudaLaunchKernel(reinterpret_cast<const void*>(chosen().kernel), dim3(batch->tiles),
                                dim3(kScatterThreads), arguments, 0, lane_at(lane).stream));
  });
}

const char* follow(void* lane, void* other) {
  return on_device([&] {
    GpuStream& first = lane_at(other);
    check_cuda(cudaEventRecord(first.reached, first.stream));
    check_cuda(cudaStreamWaitEvent(lane_at(lane).stream, first.reached, 0));
  });
}

const char* wait(void* lane) {
  return on_device([&] { wait_for(lane_at(lane)); });
}

const char* done(void* lane, bool* done) {
  return on_device([&] {
    cudaError_t code = cudaStreamQuery(lane_at(lane).stream);
    *done = code == cudaSuccess;
    if (code != cudaErrorNotReady) check_cuda(code);
  });
}

// The library registers its operations with libtorch when it is loaded; no function of it is called from
// here.
const char* load_torch() {
  return guarded([] {
    if (!dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_LOCAL)) throw std::runtime_error(dlerror());
  });
}

}  // namespace

// Also for hosts without a driver or a GPU, and before a GPU is chosen.
CudaFacts look_at_cuda() {
  CudaFacts facts;
  check_cuda(cudaRuntimeGetVersion(&facts.version));
  facts.driver = driver_version();
  for (int i = 0, count = facts.driver == 0 ? 0 : device_count(); i < count; i++) {
    cudaDeviceProp properties{};
    check_cuda(cudaGetDeviceProperties(&properties, i));
    facts.devices.push_back(properties.name);
  }
  return facts;
}

const MckptCudaTable kCudaFunctions = {
    sizeof(MckptCudaTable),
    devices,
    id,
    choose,
    use_here,
    facts,
    allocate,
    release,
    register_host,
    unregister_host,
    make_lane,
    release_lane,
    copy,
    zero,
    scatter,
    follow,
    wait,
    done,
    load_torch,
};

}  // namespace mckpt::impl
