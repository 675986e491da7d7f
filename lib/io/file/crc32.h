// CRC-32 with zip's polynomial: the sum that zip archives (.pt files, records of .distcp files) store, and
// that mckpt_manifest.json stores for the data of tensors. Sums of stretches that follow each other can be
// joined without the bytes, so threads sum the parts of a record in any order:
//
//   crc32(0, "abcdef")  =  crc32(crc32(0, "abc"), "def")  =  crc32_join(crc32(0, "abc"), crc32(0, "def"), 3)
//
// A CRC finds damage, not intent: whoever changes bytes can make them fit their sum. Where a whole file is to
// be recognised, mckpt uses SHA-256 (io/sums/sha256.h).
#pragma once

#include <span>
#include <string>

#include "core/base/int.h"

namespace mckpt::impl {

// Continues a sum: `before` is the sum of the bytes so far (0 if there are none), `bytes` follow them.
u32 crc32(u32 before, std::span<const u8> bytes);

// The sum of two stretches one after the other, from their sums and the length of the second.
u32 crc32_join(u32 first, u32 second, i64 second_bytes);

// Eight hexadecimal digits, such as "0a1b2c3d".
std::string crc32_text(u32 sum);

}  // namespace mckpt::impl
