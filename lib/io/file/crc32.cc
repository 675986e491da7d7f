// CRC-32 by libdeflate if the build has it, because it sums with vector instructions; else by zlib. Sums are
// joined by zlib in either case: libdeflate has no such function. Joining takes a number of steps that grows
// with the logarithm of the length, not with the length.
#include "io/file/crc32.h"

#include <zlib.h>
#ifdef MCKPT_LIBDEFLATE
#include <libdeflate.h>
#endif

#include <cstdio>

namespace mckpt::impl {

u32 crc32(u32 before, std::span<const u8> bytes) {
#ifdef MCKPT_LIBDEFLATE
  return libdeflate_crc32(before, bytes.data(), bytes.size());
#else
  return static_cast<u32>(::crc32_z(before, bytes.data(), bytes.size()));
#endif
}

u32 crc32_join(u32 first, u32 second, i64 second_bytes) {
  return static_cast<u32>(::crc32_combine(first, second, second_bytes));
}

std::string crc32_text(u32 sum) {
  char text[9];
  std::snprintf(text, sizeof text, "%08x", sum);
  return text;
}

}  // namespace mckpt::impl
