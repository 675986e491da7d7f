// Streams of bits as Zstandard has them: read forwards (tables), and backwards from a last 1 bit (symbols).
// Private to io/zstd.
//
//   backwards   bytes  b0 b1 b2,  b2 = 0001xxxx: the 1 is the end mark, and the first bits read are xxxx, then b1, b0
#pragma once

#include <bit>
#include <span>

#include "core/base/int.h"
#include "io/file/bytes.h"

namespace mckpt::impl {

// Throws kItemMismatch: the stream is not Zstandard's, or was changed.
[[noreturn]] void throw_bad_zstd(const char* what);

// The number of the highest bit that is set. pre: v > 0
inline int highest_bit(u64 v) { return static_cast<int>(std::bit_width(v)) - 1; }

// Up to 32 bits that begin at bit `at`, the lowest first; bits beyond the end are 0.
inline u32 bits_at(std::span<const u8> bytes, i64 at, int count) {
  u64 word = 0;
  const std::size_t first = static_cast<std::size_t>(at >> 3);
  if (first + sizeof word <= bytes.size())
    word = load_le<u64>(bytes.data() + first);
  else
    for (std::size_t i = 0; first + i < bytes.size(); i++) word |= u64{bytes[first + i]} << 8 * i;
  return static_cast<u32>(word >> (at & 7) & ((u64{1} << count) - 1));
}

class ForwardBits {
 public:
  explicit ForwardBits(std::span<const u8> bytes) : bytes_(bytes) {}
  u32 read(int count) {
    if (at_ + count > std::ssize(bytes_) * 8) throw_bad_zstd("a table goes on after its end");
    u32 out = bits_at(bytes_, at_, count);
    at_ += count;
    return out;
  }
  void back(int count) { at_ -= count; }
  std::size_t bytes_read() const { return static_cast<std::size_t>((at_ + 7) / 8); }

 private:
  std::span<const u8> bytes_;
  i64 at_ = 0;
};

class BackwardBits {
 public:
  // Throws kItemMismatch without an end mark.
  explicit BackwardBits(std::span<const u8> bytes) : bytes_(bytes) {
    if (bytes.empty() || bytes.back() == 0) throw_bad_zstd("a stream of bits has no end mark");
    left_ = std::ssize(bytes) * 8 - 8 + highest_bit(bytes.back());
  }
  // Bits before the beginning are 0; left() is negative then.
  u32 read(int count) {
    left_ -= count;
    if (left_ >= 0) return bits_at(bytes_, left_, count);
    int inside = static_cast<int>(left_ + count);
    return inside <= 0 ? 0 : bits_at(bytes_, 0, inside) << (count - inside);
  }
  i64 left() const { return left_; }

 private:
  std::span<const u8> bytes_;
  i64 left_;  // bits that were not read yet
};

}  // namespace mckpt::impl
