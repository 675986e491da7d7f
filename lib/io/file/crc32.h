// CRC-32 as zip has it, at memory speed.
#pragma once

#include <span>

#include "core/base/int.h"

namespace mckpt::impl {

// The checksum of what `before` is the checksum of, followed by `bytes`. The checksum of nothing is 0.
u32 crc32(u32 before, std::span<const u8> bytes);

// The checksum of two pieces put together, from those of the pieces.
u32 crc32_join(u32 first, u32 second, i64 second_bytes);

}  // namespace mckpt::impl
