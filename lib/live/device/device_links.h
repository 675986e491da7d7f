// DeviceLinks: the devices of ranks, connected once for each set of ranks. Dense weights, experts and the
// whole job often have the same ranks, and to connect them takes time and memory of the device.
#pragma once

#include <memory>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

class Comm;
class Device;
class DeviceRanks;

class DeviceLinks {
 public:
  // Both outlive this.
  DeviceLinks(Device& device, Comm& world);
  ~DeviceLinks();

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
