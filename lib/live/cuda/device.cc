// A GPU with its memory and its lanes, and which one a rank gets. The GPUs of all
// ranks are compared by their identities, because every process numbers its own from 0.
#include "live/cuda/device.h"

#include <cstring>

#include "core/base/error.h"
#include "core/base/once.h"
#include "live/cuda/calls.h"
#include "live/cuda/gpu_choice.h"
#include "live/cuda/lane.h"
#include "live/cuda/memory.h"
#include "live/cuda/ranks.h"
#include "runtime/comm/comm.h"
#include "runtime/modules/module.h"

namespace mckpt::impl {
namespace {

// One GPU. The module stays loaded, so the object owns no resource of CUDA but its memories.
class CudaDevice final : public Device {
 public:
  CudaDevice(i32 number, void* gpu) : gpu_(gpu), name_(cat("cuda:", number)), weights_(gpu), staging_(gpu) {}
  const char* name() const override { return name_.c_str(); }
  Memory& weights() override { return weights_; }
  Memory& staging() override { return staging_; }
  bool is_host() const override { return false; }
  std::unique_ptr<Lane> lane() override { return std::make_unique<CudaLane>(gpu_); }
  std::unique_ptr<DeviceRanks> ranks(Comm& comm) override { return cuda_ranks(comm, gpu_); }
  // Without libtorch's CUDA library a tensor on a GPU is a view on which no operation works.
  void load_torch() override {
    torch_loaded_.run([] {
      if (const char* error = cuda().load_torch())
        throw Error(Code::kInternal, cat("libtorch: ", escaped(error, 500)));
    });
  }

 private:
  void* gpu_;  // of the cuda module
  std::string name_;
  GpuMemory weights_;
  PinnedMemory staging_;
  Once torch_loaded_;
};

// The GPUs that this process may use, at least one. Throws kModuleMissing with the reason if there are none.
std::vector<GpuId> usable_gpus() {
  i32 count = 0;
  if (const char* error = cuda().devices(&count))
    throw Error(Code::kModuleMissing, cat("there is no GPU to use: ", escaped(error, 500)));
  if (count == 0)
    throw Error(Code::kModuleMissing, "there is no GPU to use")
        .note("CUDA_VISIBLE_DEVICES, if it is set, says which GPUs a process may use");
  std::vector<GpuId> ids(static_cast<std::size_t>(count));
  for (i32 i = 0; i < count; i++) check_cuda(cuda().id(i, ids[i].data()), "looking at the GPUs");
  return ids;
}

// Collective: the GPUs that each rank may use, by rank.
std::vector<std::vector<GpuId>> gather_gpus(Comm& world, std::span<const GpuId> mine) {
  Gathered all = world.all_gather_v(std::as_bytes(mine));
  std::vector<std::vector<GpuId>> usable;
  for (int r = 0; r < world.size(); r++) {
    std::span<const std::byte> bytes = all.of(r);
    usable.emplace_back(bytes.size() / sizeof(GpuId));
    std::memcpy(usable.back().data(), bytes.data(), bytes.size());
  }
  return usable;
}

// `with_kernel`: the kernel is compiled while the GPU's context is made.
std::unique_ptr<Device> opened(i32 number, bool with_kernel, bool threads_sleep) {
  void* gpu = nullptr;
  if (with_kernel) check_cuda(cuda().want_kernel(number), "looking at the GPU");
  check_cuda(cuda().open(number, threads_sleep, &gpu), "choosing a GPU");
  return std::make_unique<CudaDevice>(number, gpu);
}

}  // namespace

std::unique_ptr<Device> cuda_device(Comm& world, std::span<const std::string> module_folders) {
  load_module("cuda", module_folders);
  std::vector<std::vector<GpuId>> usable = gather_gpus(world, usable_gpus());
  i32 gpu = choose_gpus(usable)[world.rank()];
  // A missing module is reported now, not when it is first used.
  if (world.size() > 1) load_module("nccl", module_folders);
  return opened(gpu, true, true);
}

std::unique_ptr<Device> open_gpu(int number, bool with_kernel, std::span<const std::string> module_folders) {
  load_module("cuda", module_folders);
  i64 count = std::ssize(usable_gpus());
  if (number < 0 || number >= count)
    throw Error(Code::kModuleMissing, cat("there is no GPU ", number))
        .expected(count == 1 ? "cuda:0, the only GPU that this process may use"
                             : cat("cuda:0 to cuda:", count - 1))
        .found(cat("cuda:", number))
        .note("CUDA_VISIBLE_DEVICES, if it is set, says which GPUs a process may use");
  return opened(number, with_kernel, false);
}

}  // namespace mckpt::impl
