// The devices that tests run on: the host always, the host with the kernel of GPUs, and a GPU where there is
// one.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "core/base/error.h"
#include "live/cuda/device.h"
#include "live/device/device.h"
#include "live/device/memory.h"
#include "tests/support/job.h"

namespace mckpt::impl {

// The host, where copies are carried out by the kernel of GPUs, in batches and cut as for it.
std::unique_ptr<Device> kernel_device();

// A device by its name, or why it cannot be had here. There is one of each in a process.
struct TestDevice {
  std::unique_ptr<Device> device;
  std::string missing;
};

inline TestDevice make_test_device(const std::string& name) {
  if (name == "cpu") return {std::make_unique<HostDevice>(), ""};
  if (name == "kernel") return {kernel_device(), ""};
  try {
    return {cuda_device(world()), ""};
  } catch (const Error& e) {
    return {nullptr, e.what()};
  }
}

inline TestDevice& test_device(const std::string& name) {
  static std::map<std::string, TestDevice> made;
  auto found = made.find(name);
  return found != made.end() ? found->second : made.emplace(name, make_test_device(name)).first->second;
}

inline std::vector<u8> random_bytes(i64 bytes, unsigned seed) {
  std::vector<u8> out(static_cast<std::size_t>(bytes));
  std::mt19937 random(seed);
  for (u8& b : out) b = static_cast<u8>(random());
  return out;
}

class OnDevice : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const TestDevice& made = test_device(GetParam());
    if (!made.device) GTEST_SKIP() << made.missing;
    device_ = made.device.get();
    lane_ = device_->lane();
  }

  // Device memory, filled with bytes of the host and read back.
  Block put(std::span<const u8> bytes) {
    Block there(device_->weights(), std::max<i64>(1, std::ssize(bytes)));
    Block staged(device_->staging(), there.bytes());
    std::ranges::copy(bytes, staged.data());
    lane_->upload({staged.data(), bytes.size()}, there.data());
    lane_->wait();
    return there;
  }
  std::vector<u8> get(const u8* from, i64 bytes) {
    Block staged(device_->staging(), std::max<i64>(1, bytes));
    std::span<u8> there(staged.data(), static_cast<std::size_t>(bytes));
    lane_->download(from, there);
    lane_->wait();
    return {there.begin(), there.end()};
  }

  // Carries out a batch on the device and checks every byte of the destination against `expected`.
  void scatter_and_check(std::vector<ItemCopy> copies, std::span<const u8> from, std::span<const u8> expected,
                         const std::string& what) {
    Block source = put(from), destination = put(std::vector<u8>(expected.size(), 0xEE));
    for (ItemCopy& c : copies) {
      c.from = source.data() + (c.from - from.data());
      c.to = destination.data() + (c.to - expected.data());
    }
    lane_->scatter(copies);
    std::vector<u8> got = get(destination.data(), std::ssize(expected));
    if (std::ranges::equal(got, expected)) return;
    auto wrong = std::ranges::mismatch(got, expected).in1 - got.begin();
    FAIL() << what << ": byte " << wrong << " is " << int{got[static_cast<std::size_t>(wrong)]} << ", not "
           << int{expected[static_cast<std::size_t>(wrong)]};
  }

  Device* device_ = nullptr;
  std::unique_ptr<Lane> lane_;
};

inline const auto kTestDevices = testing::Values("cpu", "kernel", "cuda");
inline std::string device_label(const testing::TestParamInfo<std::string>& p) { return p.param; }

}  // namespace mckpt::impl
