// Decompression of what zip calls method 8 (deflate), and of the same stream in a zlib frame. torch
// compresses nothing, but archives that were packed again by other tools are read.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

// Exactly `bytes` bytes, or kBadZip. Memory is bounded by what a stream of this length can become, whatever
// size is declared. `offset` is for the message.
std::vector<u8> inflated(std::span<const u8> stream, i64 bytes, i64 offset);

// Inflates a stream with zlib's header and checksum, which must match. Nothing if it does not give exactly
// `bytes` bytes.
std::optional<std::vector<u8>> zlib_inflated(std::span<const u8> stream, i64 bytes);

}  // namespace mckpt::impl
