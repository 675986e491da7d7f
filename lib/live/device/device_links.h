// DeviceLinks: the devices of ranks, connected once for each set of ranks. Dense weights, experts and the
// whole job often have the same ranks, and to connect them takes time and memory of the device.
#pragma once

#include <memory>
#include <vector>

#include "live/device/device.h"

namespace mckpt::impl {

class DeviceLinks {
 public:
  // Both outlive this.
  DeviceLinks(Device& device, Comm& world) : device_(device), world_(world) {}

  // Collective over `comm`, ranks of the world, which outlives this. All that share a link call it in the
  // same order.
  DeviceRanks& between(Comm& comm);

 private:
  struct Link {
    std::vector<i64> members;  // ranks of the world
    std::unique_ptr<DeviceRanks> ranks;
  };

  Device& device_;
  Comm& world_;
  std::vector<Link> links_;
};

}  // namespace mckpt::impl
