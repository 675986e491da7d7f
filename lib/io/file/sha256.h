// SHA-256 (FIPS 180-4) of a stream of bytes. Uses the processor's SHA instructions where it has them.
#pragma once

#include <array>
#include <span>
#include <string>

#include "core/base/int.h"

namespace mckpt::impl {

class Sha256 {
 public:
  void update(std::span<const u8> bytes);
  // The digest of all bytes so far. Call once; the object cannot be used afterwards.
  std::array<u8, 32> digest();
  std::string hex_digest();

  // For the tests: the portable code even where the processor could do better.
  static Sha256 portable();

 private:
  using Compress = void (*)(u32* state, const u8* blocks, std::size_t count);
  static Compress best_compress();

  std::array<u32, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                               0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<u8, 64> pending_{};
  std::size_t pending_bytes_ = 0;
  u64 total_bytes_ = 0;
  Compress compress_ = best_compress();
};

}  // namespace mckpt::impl
