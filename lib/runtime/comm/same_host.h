// Which ranks are on one host: they run under one kernel, see the same files and reach each other over the
// loopback device. Loading reads each file once for all ranks of a host, and the watch needs their shared
// memory.
#pragma once

#include <array>
#include <memory>

#include "core/base/int.h"

namespace mckpt::impl {

class Comm;

// The identity of a host, for ranks to compare. A host name alone is not enough: machines made from one image
// have equal names, and containers of one machine, which see different files, have one kernel under several
// names.
struct HostId {
  std::array<char, 256> name = {};  // ends with a 0
  std::array<char, 40> boot = {};   // the id of the kernel's last boot
  u64 network = 0;                  // the inode of the network namespace

  auto operator<=>(const HostId&) const = default;
};
HostId this_host();

// Collective. The ranks that share this rank's host, in the order of their ranks in `comm`.
std::unique_ptr<Comm> ranks_of_host(Comm& comm);

}  // namespace mckpt::impl
