// Zstandard (RFC 8878), read only: what torch's DCP writes with its extension ZStandard. Decompresses whole
// streams into memory.
//
//   stream   [frame][frame] ...        frame   magic | size of the window | blocks | checksum
//   block    as it is | one byte, repeated | literals (Huffman) and sequences (FSE): copy 5 literals, then 12 bytes
//            from 300 bytes before
#pragma once

#include <span>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

// The content of all frames, one after the other. Throws kItemMismatch for a stream that is damaged, needs a
// dictionary or has more than `most_bytes`, kBadChecksum where a checksum does not match.
std::vector<u8> unpack_zstd(std::span<const u8> stream, i64 most_bytes);

}  // namespace mckpt::impl
