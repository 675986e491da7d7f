// DeviceRanks over the process's own memory: what a Comm does, for parts that lie anywhere and are of any
// size.
#pragma once

#include "live/device/device.h"

namespace mckpt {

// An exchange goes in rounds of at most so many bytes sent and received by a rank.
inline constexpr i64 kExchangeRound = i64{64} << 20;

// pre: 0 < size of `comm` <= round_bytes <= kLargestMessage.
std::unique_ptr<DeviceRanks> host_ranks(Comm& comm, i64 round_bytes = kExchangeRound);

}  // namespace mckpt
