// DeviceLinks: the devices of ranks, connected once for each set of ranks. The ranks that share dense
// weights, those that share experts, and the whole job are often the same ranks, and a connection (a
// communicator of NCCL) takes time and memory of the device.
//
//   between(world)   ranks 0 1 2 3    connects
//   between(dense)   ranks 0 1 2 3    the same connection
//   between(expert)  ranks 0 2        connects
#pragma once

#include <memory>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

class Comm;
class Device;
class DeviceRanks;

// The connections of one rank. The object owns them.
class DeviceLinks {
 public:
  // Device and world outlive this object.
  DeviceLinks(Device& device, Comm& world);
  ~DeviceLinks();

  // The connection of the ranks of `comm`, all of which are ranks of the world; Comms with the same ranks in
  // the same order share one. Collective over `comm`, which outlives this object. All ranks of a connection
  // ask for their connections in the same order.
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
