// DeviceRanks over the processes' own memory: the collectives of a Comm, for parts of any size at any
// address.
//
//   exchange of 200 MiB with each of 3 ranks     rounds of at most 64 MiB: 16 MiB to each of 4 ranks     13 rounds
#pragma once

#include "live/device/device.h"

namespace mckpt::impl {

// An exchange works in rounds; a rank sends and receives at most this many bytes in each.
inline constexpr i64 kExchangeRound = i64{64} << 20;

// `comm` outlives the result. pre: 0 < size of `comm` <= round_bytes <= kLargestMessage.
std::unique_ptr<DeviceRanks> host_ranks(Comm& comm, i64 round_bytes = kExchangeRound);

}  // namespace mckpt::impl
