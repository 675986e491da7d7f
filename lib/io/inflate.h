// Inflates what zip calls method 8.
#pragma once

#include <span>
#include <vector>

#include "core/int.h"

namespace mckpt {

// Exactly `bytes` bytes, or kBadZip: memory is taken as the stream yields it, never by the declared size
// alone. `offset` is for the message.
std::vector<u8> inflated(std::span<const u8> stream, i64 bytes, i64 offset);

}  // namespace mckpt
