// SHA-256 (FIPS 180-4) of a stream of bytes, for the digests of `ls` and of mckpt_manifest.json. It uses the
// processor's SHA instructions if there are any, which is several times faster than plain C++.
//
//   Sha256 sum;
//   sum.update(first), sum.update(rest);      any number of stretches of any length
//   std::string hex = sum.hex_digest();       64 digits
//
// One stream keeps the SHA unit of a processor half busy, because each step waits for the one before. So the
// same bytes for two streams, of a file and of a tensor in it, cost little more than for one:
//
//   Sha256::update_both(of_file, of_tensor, bytes);
//
// An object belongs to one thread. Its memory does not grow with the stream.
#pragma once

#include <array>
#include <span>
#include <string>

#include "core/base/int.h"

namespace mckpt::impl {

// The digest of one stream.
class Sha256 {
 public:
  void update(std::span<const u8> bytes);
  // one.update(bytes) and other.update(bytes). pre: they are two objects.
  static void update_both(Sha256& one, Sha256& other, std::span<const u8> bytes);
  // The digest of all bytes so far. Call once; the object cannot be used afterwards.
  std::array<u8, 32> digest();
  std::string hex_digest();

  // For the tests: an object that uses the portable code on any processor.
  static Sha256 portable();

 private:
  using Compress = void (*)(u32* state, const u8* blocks, std::size_t count);
  static Compress best_compress();
  void end_block(std::span<const u8>& bytes);
  void keep(std::span<const u8> bytes);

  std::array<u32, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                               0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<u8, 64> pending_{};
  std::size_t pending_bytes_ = 0;
  u64 total_bytes_ = 0;
  Compress compress_ = best_compress();
};

}  // namespace mckpt::impl
