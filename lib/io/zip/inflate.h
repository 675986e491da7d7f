// Inflates what zip calls method 8, and the same in a zlib frame.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

// Exactly `bytes` bytes, or kBadZip: memory is taken as the stream yields it, never by the declared size
// alone. `offset` is for the message.
std::vector<u8> inflated(std::span<const u8> stream, i64 bytes, i64 offset);

// Inflates a stream with zlib's header and checksum, which must match. Nothing if it does not inflate to
// `bytes` bytes.
std::optional<std::vector<u8>> zlib_inflated(std::span<const u8> stream, i64 bytes);

}  // namespace mckpt::impl
