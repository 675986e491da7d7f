// Which ranks are on one host: they run under one kernel, see the same files and reach each other over the
// loopback.
#pragma once

#include <array>
#include <memory>

#include "core/base/int.h"

namespace mckpt::impl {

class Comm;

// What a rank knows its host by, for others to compare. A name alone says nothing: machines out of one image
// have the same, and containers of one machine, which see different files, have one kernel under several.
struct HostId {
  std::array<char, 256> name = {};  // ends with a 0
  std::array<char, 40> boot = {};
  u64 network = 0;  // the namespace

  auto operator<=>(const HostId&) const = default;
};
HostId this_host();

// Collective. The ranks that share this rank's host, in the order of their ranks.
std::unique_ptr<Comm> ranks_of_host(Comm& comm);

}  // namespace mckpt::impl
