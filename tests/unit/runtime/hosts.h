// Hosts that ranks of the tests say they are on.
#pragma once

#include <string_view>

#include "runtime/comm/same_host.h"

namespace mckpt::impl {

inline HostId host_named(std::string_view name) {
  HostId host;
  name.copy(host.name.data(), host.name.size() - 1);
  return host;
}

}  // namespace mckpt::impl
