// DeviceRanks over the process's own memory: the collectives of a Comm, for parts at any place and of any
// size.
#pragma once

#include <memory>

#include "core/base/int.h"

namespace mckpt::impl {

class Comm;
class DeviceRanks;

// An exchange works in rounds; a rank sends and receives at most this many bytes in each.
inline constexpr i64 kExchangeRound = i64{64} << 20;

// pre: 0 < size of `comm` <= round_bytes <= kLargestMessage.
std::unique_ptr<DeviceRanks> host_ranks(Comm& comm, i64 round_bytes = kExchangeRound);

}  // namespace mckpt::impl
