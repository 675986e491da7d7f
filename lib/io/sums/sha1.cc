// Block by block, as the standard has it. Only small files are summed so: there is nothing to make faster.
#include "io/sums/sha1.h"

#include <algorithm>
#include <bit>

namespace mckpt::impl {

void Sha1::update(std::span<const u8> bytes) {
  bytes_ += bytes.size();
  while (!bytes.empty()) {
    const std::size_t n = std::min(bytes.size(), block_.size() - filled_);
    std::copy_n(bytes.begin(), n, block_.begin() + static_cast<std::ptrdiff_t>(filled_));
    filled_ += n;
    bytes = bytes.subspan(n);
    if (filled_ == block_.size()) end_block();
  }
}

void Sha1::end_block() {
  std::array<u32, 80> w;
  for (std::size_t i = 0; i < 16; i++)
    w[i] = u32{block_[4 * i]} << 24 | u32{block_[4 * i + 1]} << 16 | u32{block_[4 * i + 2]} << 8 |
           block_[4 * i + 3];
  for (std::size_t i = 16; i < 80; i++) w[i] = std::rotl(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
  auto [a, b, c, d, e] = state_;
  for (std::size_t i = 0; i < 80; i++) {
    u32 f = i < 20   ? (b & c) | (~b & d)
            : i < 40 ? b ^ c ^ d
            : i < 60 ? (b & c) | (b & d) | (c & d)
                     : b ^ c ^ d;
    constexpr u32 kAdded[] = {0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6};
    const u32 next = std::rotl(a, 5) + f + e + kAdded[i / 20] + w[i];
    e = d, d = c, c = std::rotl(b, 30), b = a, a = next;
  }
  state_ = {state_[0] + a, state_[1] + b, state_[2] + c, state_[3] + d, state_[4] + e};
  filled_ = 0;
}

std::string Sha1::hex_digest() {
  const u64 bits = bytes_ * 8;
  const u8 one = 0x80, zero = 0;
  update({&one, 1});
  while (filled_ != 56) update({&zero, 1});
  for (int shift = 56; shift >= 0; shift -= 8) {
    const u8 byte = static_cast<u8>(bits >> shift);
    update({&byte, 1});
  }
  std::string out;
  for (u32 word : state_)
    for (int shift = 28; shift >= 0; shift -= 4) out += "0123456789abcdef"[word >> shift & 15];
  return out;
}

}  // namespace mckpt::impl
