// MckptCudaTable over the driver. A GPU's primary context is used, the one that torch and the CUDA run time
// use, so that addresses mean the same everywhere in the process. Each function makes it the present context
// of its thread for as long as it runs, and is guarded, so that errors become texts. Lanes are streams that
// do not wait for CUDA's default stream; threads that wait for a lane sleep until the GPU's interrupt.
#include "live/cuda/functions.h"

#include <dlfcn.h>

#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>

#include "live/cuda/driver.h"
#include "live/cuda/kernel.h"
#include "live/cuda/scatter_batch.h"
#include "runtime/modules/module_guard.h"

namespace mckpt::impl {
namespace {

// A GPU of this process, and the kernel once it was loaded. Not by std::call_once: see core/base/once.h,
// which a module does not include.
struct Gpu {
  CuDevice device = 0;
  CuContext context = nullptr;
  int capability = 0;  // 90: compute capability 9.0
  std::mutex loading;
  CuFunction kernel = nullptr;  // set under the mutex
};

// A lane: a stream, and an event for waiting.
struct GpuStream {
  Gpu& gpu;
  CuStream stream = nullptr;
  CuEvent reached = nullptr;  // recorded anew by each wait and each follow
};

Gpu& gpu_at(void* gpu) { return *static_cast<Gpu*>(gpu); }
GpuStream& lane_at(void* lane) { return *static_cast<GpuStream*>(lane); }
CuAddress address(const void* at) { return reinterpret_cast<CuAddress>(at); }

// Makes the GPU's context the present one of this thread, and the one before it again at the end.
class Present {
 public:
  explicit Present(const Gpu& gpu) { check_driver(driver().push_context(gpu.context)); }
  ~Present() {
    CuContext popped = nullptr;
    driver().pop_context(&popped);
  }
  Present(const Present&) = delete;
};

template <typename Fn>
const char* on_gpu(Gpu& gpu, Fn&& fn) noexcept {
  return guarded([&] {
    Present present(gpu);
    fn();
  });
}

int device_count() {  // 0 if there are none
  int count = 0;
  int result = driver().device_count(&count);
  if (result == kCuNoDevice || result == 3) return 0;  // 3: not initialised, because there is no device
  check_driver(result);
  return count;
}

CuDevice device_at(int number) {
  CuDevice device = 0;
  check_driver(driver().device_at(&device, number));
  return device;
}

int capability_of(CuDevice device) {
  int major = 0, minor = 0;
  check_driver(driver().device_attribute(&major, kCuCapabilityMajor, device));
  check_driver(driver().device_attribute(&minor, kCuCapabilityMinor, device));
  return 10 * major + minor;
}

std::string device_name(int number) {
  char name[256] = "";
  check_driver(driver().device_name(name, sizeof name, device_at(number)));
  return name;
}

const char* devices(std::int32_t* count) {
  return guarded([&] { *count = device_count(); });
}

const char* id(std::int32_t device, unsigned char* id) {
  return guarded([&] { check_driver(driver().device_uuid(id, device_at(device))); });
}

// GPUs are opened once and stay open: other libraries of the process use the same context.
const char* open_gpu(std::int32_t number, bool threads_sleep, void** gpu) {
  return guarded([&] {
    static std::mutex mutex;
    // Never destroyed: memory may be given back while the process ends.
    static auto& opened = *new std::map<int, std::unique_ptr<Gpu>>;
    std::lock_guard lock(mutex);
    std::unique_ptr<Gpu>& here = opened[number];
    if (!here) {
      auto made = std::make_unique<Gpu>();
      made->device = device_at(number);
      made->capability = capability_of(made->device);
      if (threads_sleep) check_driver(driver().primary_flags(made->device, kCuBlockingContext));
      check_driver(driver().retain_primary(&made->context, made->device));
      here = std::move(made);
    }
    *gpu = here.get();
  });
}

const char* want_kernel(std::int32_t number) {
  return guarded([&] { compile_scatter_kernel(capability_of(device_at(number))); });
}

const char* use_here(void* gpu) {
  return guarded([&] { check_driver(driver().set_context(gpu_at(gpu).context)); });
}

const char* facts(void* gpu, MckptGpuFacts* out) {
  return on_gpu(gpu_at(gpu), [&] {
    check_driver(driver().device_name(out->name, sizeof out->name, gpu_at(gpu).device));
    std::size_t free = 0, total = 0;
    check_driver(driver().mem_info(&free, &total));
    out->free_bytes = static_cast<std::int64_t>(free);
    out->total_bytes = static_cast<std::int64_t>(total);
  });
}

// False if CUDA has not enough memory; other errors are thrown.
bool granted(int result) {
  if (result == kCuOutOfMemory) return false;
  check_driver(result);
  return true;
}

const char* allocate(void* gpu, std::int64_t bytes, void** data) {
  return on_gpu(gpu_at(gpu), [&] {
    CuAddress at = 0;
    *data = granted(driver().mem_alloc(&at, static_cast<std::size_t>(bytes))) ? reinterpret_cast<void*>(at)
                                                                              : nullptr;
  });
}

const char* release(void* gpu, void* data) {
  return on_gpu(gpu_at(gpu), [&] { check_driver(driver().mem_free(address(data))); });
}

const char* register_host(void* gpu, void* data, std::int64_t bytes, bool* pinned) {
  return on_gpu(gpu_at(gpu), [&] {
    *pinned = granted(driver().host_register(data, static_cast<std::size_t>(bytes), kCuRegisterPortable));
  });
}

const char* unregister_host(void* gpu, void* data) {
  return on_gpu(gpu_at(gpu), [&] { check_driver(driver().host_unregister(data)); });
}

// Loads the kernel onto the GPU, which CUDA does at the latest when the kernel's attributes are asked for.
// Loading may wait for all running kernels, and a kernel of NCCL may wait for another rank; so where the
// kernel was asked for, it is loaded before the first lane exists.
void load_kernel(Gpu& gpu) {
  const std::scoped_lock lock(gpu.loading);
  if (gpu.kernel) return;
  CuModule module = nullptr;
  CuFunction kernel = nullptr;
  check_driver(driver().module_load(&module, compile_scatter_kernel(gpu.capability).get().data()));
  check_driver(driver().module_function(&kernel, module, "mckpt_scatter"));
  int threads = 0;
  check_driver(driver().function_attribute(&threads, 0, kernel));
  gpu.kernel = kernel;
}

const char* make_lane(void* gpu, void** lane, void** stream) {
  return on_gpu(gpu_at(gpu), [&] {
    if (is_wanted(gpu_at(gpu).capability)) load_kernel(gpu_at(gpu));
    auto made = std::make_unique<GpuStream>(gpu_at(gpu));
    // A thread that waits for the event sleeps until the GPU's interrupt.
    check_driver(driver().event_create(&made->reached, kCuEventBlocking | kCuEventUntimed));
    check_driver(driver().stream_create(&made->stream, kCuStreamNonBlocking));
    *stream = made->stream;
    *lane = made.release();
  });
}

// Waits for a lane. Ending a sleep takes an interrupt, which is slow in a virtual machine, so a lane that is
// done already is not waited for.
void wait_for(GpuStream& lane) {
  if (int result = driver().stream_query(lane.stream); result != kCuNotReady) return check_driver(result);
  check_driver(driver().event_record(lane.reached, lane.stream));
  check_driver(driver().event_synchronize(lane.reached));
}

const char* release_lane(void* lane) {
  return on_gpu(lane_at(lane).gpu, [&] {
    std::unique_ptr<GpuStream> owned(&lane_at(lane));
    // All three are called, also if the first one fails; the first error is thrown.
    int waited = driver().stream_synchronize(owned->stream);
    int stream = driver().stream_destroy(owned->stream);
    int event = driver().event_destroy(owned->reached);
    for (int error : {waited, stream, event}) check_driver(error);
  });
}

const char* copy(void* lane, const void* from, void* to, std::int64_t bytes) {
  return on_gpu(lane_at(lane).gpu, [&] {
    check_driver(driver().memcpy_async(address(to), address(from), static_cast<std::size_t>(bytes),
                                       lane_at(lane).stream));
  });
}

const char* zero(void* lane, void* at, std::int64_t bytes) {
  return on_gpu(lane_at(lane).gpu, [&] {
    check_driver(
        driver().memset_async(address(at), 0, static_cast<std::size_t>(bytes), lane_at(lane).stream));
  });
}

const char* scatter(void* lane, const ScatterBatch* batch) {
  Gpu& gpu = lane_at(lane).gpu;
  return on_gpu(gpu, [&] {
    load_kernel(gpu);
    void* arguments[] = {const_cast<ScatterBatch*>(batch)};
    check_driver(driver().launch(gpu.kernel, batch->tiles, 1, 1, kScatterThreads, 1, 1, 0,
                                 lane_at(lane).stream, arguments, nullptr));
  });
}

const char* follow(void* lane, void* other) {
  GpuStream& first = lane_at(other);
  return on_gpu(first.gpu, [&] {
    check_driver(driver().event_record(first.reached, first.stream));
    check_driver(driver().stream_wait_event(lane_at(lane).stream, first.reached, 0));
  });
}

const char* wait(void* lane) {
  return on_gpu(lane_at(lane).gpu, [&] { wait_for(lane_at(lane)); });
}

const char* done(void* lane, bool* done) {
  return on_gpu(lane_at(lane).gpu, [&] {
    int result = driver().stream_query(lane_at(lane).stream);
    *done = result == kCuSuccess;
    if (result != kCuNotReady) check_driver(result);
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
  const CudaDriver* found = nullptr;
  try {
    found = &driver();
  } catch (const std::runtime_error&) {
    return facts;
  }
  check_driver(found->version(&facts.driver));
  for (int i = 0, count = device_count(); i < count; i++) facts.devices.push_back(device_name(i));
  try {
    facts.compiler = nvrtc_version();
  } catch (const std::runtime_error&) {
  }
  return facts;
}

const MckptCudaTable kCudaFunctions = {
    sizeof(MckptCudaTable),
    devices,
    id,
    open_gpu,
    want_kernel,
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
