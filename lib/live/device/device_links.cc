// A connection is found by the list of its ranks in the world, which one all_gather gives; so every question
// costs a collective, and a new set of ranks a connection.
#include "live/device/device_links.h"

#include "live/device/device.h"
#include "runtime/comm/comm.h"

namespace mckpt::impl {

DeviceLinks::DeviceLinks(Device& device, Comm& world) : device_(device), world_(world) {}
DeviceLinks::~DeviceLinks() = default;

// If one rank finds the connection in its list, all ranks of the connection do, because they made it
// together.
DeviceRanks& DeviceLinks::between(Comm& comm) {
  i64 mine = world_.rank();
  std::vector<i64> members(static_cast<std::size_t>(comm.size()));
  comm.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(members)));
  for (Link& link : links_)
    if (link.members == members) return *link.ranks;
  links_.push_back({std::move(members), device_.ranks(comm)});
  return *links_.back().ranks;
}

}  // namespace mckpt::impl
