#include "live/cuda/scatter_plan.h"
#include "live/device/device.h"
#include "live/device/memory.h"
#include "runtime/comm/comm.h"
#include "tests/unit/live/devices.h"
#include "tests/unit/live/scatter_kernel_on_host.h"

namespace mckpt::impl {
namespace {

class KernelLane final : public Lane {
 public:
  explicit KernelLane(std::unique_ptr<Lane> host) : host_(std::move(host)) {}
  void upload(std::span<const u8> from, u8* to) override { host_->upload(from, to); }
  void download(const u8* from, std::span<u8> to) override { host_->download(from, to); }
  void copy(const u8* from, u8* to, i64 bytes) override { host_->copy(from, to, bytes); }
  void zero(u8* at, i64 bytes) override { host_->zero(at, bytes); }
  void scatter(std::span<const ItemCopy> copies) override {
    constexpr i64 kMostUnits = 5000;  // so that larger copies are cut
    for_each_batch(copies, run_scatter_kernel, kMostUnits);
  }
  void follow(Lane&) override {}
  void wait() override {}
  bool done() override { return true; }

 private:
  std::unique_ptr<Lane> host_;
};

class KernelDevice final : public Device {
 public:
  const char* name() const override { return host_.name(); }
  Memory& weights() override { return host_.weights(); }
  Memory& staging() override { return host_.staging(); }
  bool is_host() const override { return true; }
  std::unique_ptr<Lane> lane() override { return std::make_unique<KernelLane>(host_.lane()); }
  std::unique_ptr<DeviceRanks> ranks(Comm& comm) override { return host_.ranks(comm); }

 private:
  HostDevice host_;
};

}  // namespace

std::unique_ptr<Device> kernel_device() { return std::make_unique<KernelDevice>(); }

}  // namespace mckpt::impl
