// SHA-1 (FIPS 180-4), for one purpose: git names the content of a file by it, and the cache of the Hugging
// Face hub names small files so. It does not protect against somebody who makes two files of one sum.
//
//   git's name of "hello\n" (6 bytes):   SHA-1 of "blob 6\0hello\n" = ce013625030ba8dba906f756967f9e9ca394464a
#pragma once

#include <array>
#include <span>
#include <string>

#include "core/base/int.h"

namespace mckpt::impl {

// The digest of one stream; for one thread.
class Sha1 {
 public:
  void update(std::span<const u8> bytes);
  // The digest of all bytes so far as 40 digits. Call once; the object cannot be used afterwards.
  std::string hex_digest();

 private:
  void end_block();

  std::array<u32, 5> state_ = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
  std::array<u8, 64> block_{};
  std::size_t filled_ = 0;
  u64 bytes_ = 0;
};

}  // namespace mckpt::impl
