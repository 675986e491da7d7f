// The two parts of SHA-256: the compression of blocks of 64 bytes into a state of eight words, written once
// in plain C++ and once with the processor's instructions; and the padding that ends the stream:
//
//   stream: "abc"     one block:  61 62 63 | 80 | 52 zero bytes | 00 00 00 00 00 00 00 18 (24 bits)
//
// A stream whose last block has more than 55 bytes needs one more block for the length.
#include "io/sums/sha256.h"

#include <algorithm>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace mckpt::impl {
namespace {

constexpr std::size_t kBlock = 64;

alignas(16) constexpr u32 kRound[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

u32 load_big(const u8* p) {
  u32 v = 0;
  for (int i = 0; i < 4; i++) v = v << 8 | static_cast<u32>(p[i]);
  return v;
}

void compress_portable(u32* state, const u8* block, std::size_t count) {
  for (; count > 0; count--, block += kBlock) {
    u32 w[64];
    for (int i = 0; i < 16; i++) w[i] = load_big(block + 4 * i);
    for (int i = 16; i < 64; i++) {
      u32 s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ (w[i - 15] >> 3);
      u32 s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ (w[i - 2] >> 10);
      w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    u32 a = state[0], b = state[1], c = state[2], d = state[3];
    u32 e = state[4], f = state[5], g = state[6], h = state[7];
    for (int i = 0; i < 64; i++) {
      u32 t1 = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) + ((e & f) ^ (~e & g)) +
               kRound[i] + w[i];
      u32 t2 = (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
      h = g, g = f, f = e, e = d + t1;
      d = c, c = b, b = a, a = t1 + t2;
    }
    const u32 after[8] = {a, b, c, d, e, f, g, h};
    for (int i = 0; i < 8; i++) state[i] += after[i];
  }
}

#if defined(__x86_64__)
// A stream in the registers of the SHA instructions, which keep the state as (a b e f) and (c d g h) and do
// two rounds at a time.
struct ShaLane {
  __m128i abef, cdgh;
  __m128i w[4];  // the last 16 words of the message schedule
};

#define MCKPT_SHA __attribute__((target("sha,sse4.1"), always_inline)) inline

MCKPT_SHA ShaLane load_lane(const u32* state) {
  __m128i abcd = _mm_loadu_si128(reinterpret_cast<const __m128i*>(state));
  __m128i efgh = _mm_loadu_si128(reinterpret_cast<const __m128i*>(state + 4));
  abcd = _mm_shuffle_epi32(abcd, 0xb1);
  efgh = _mm_shuffle_epi32(efgh, 0x1b);
  return {_mm_alignr_epi8(abcd, efgh, 8), _mm_blend_epi16(efgh, abcd, 0xf0), {}};
}

MCKPT_SHA void store_lane(const ShaLane& lane, u32* state) {
  __m128i feba = _mm_shuffle_epi32(lane.abef, 0x1b), dchg = _mm_shuffle_epi32(lane.cdgh, 0xb1);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(state), _mm_blend_epi16(feba, dchg, 0xf0));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(state + 4), _mm_alignr_epi8(dchg, feba, 8));
}

MCKPT_SHA void load_words(ShaLane& lane, const u8* block) {
  const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  for (int i = 0; i < 4; i++)
    lane.w[i] = _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(block + 16 * i)), swap);
}

// Four rounds, and the next four words of the schedule.
MCKPT_SHA void four_rounds(ShaLane& lane, int quad) {
  const __m128i now = lane.w[quad % 4];
  __m128i sum = _mm_add_epi32(now, _mm_load_si128(reinterpret_cast<const __m128i*>(kRound + 4 * quad)));
  lane.cdgh = _mm_sha256rnds2_epu32(lane.cdgh, lane.abef, sum);
  lane.abef = _mm_sha256rnds2_epu32(lane.abef, lane.cdgh, _mm_shuffle_epi32(sum, 0x0e));
  if (quad >= 12) return;
  const __m128i next = lane.w[(quad + 1) % 4], last = lane.w[(quad + 3) % 4];
  __m128i grown =
      _mm_add_epi32(_mm_sha256msg1_epu32(now, next), _mm_alignr_epi8(last, lane.w[(quad + 2) % 4], 4));
  lane.w[quad % 4] = _mm_sha256msg2_epu32(grown, last);
}

MCKPT_SHA void add(ShaLane& lane, const ShaLane& before) {
  lane.abef = _mm_add_epi32(lane.abef, before.abef);
  lane.cdgh = _mm_add_epi32(lane.cdgh, before.cdgh);
}

__attribute__((target("sha,sse4.1"))) void compress_sha_ni(u32* state, const u8* block, std::size_t count) {
  ShaLane lane = load_lane(state);
  for (; count > 0; count--, block += kBlock) {
    const ShaLane before = lane;
    load_words(lane, block);
#pragma GCC unroll 16
    for (int quad = 0; quad < 16; quad++) four_rounds(lane, quad);
    add(lane, before);
  }
  store_lane(lane, state);
}

// Blocks of two streams side by side: while the rounds of one wait for each other, the unit does the other's.
__attribute__((target("sha,sse4.1"))) void compress_two_sha_ni(u32* one_state, const u8* one_block,
                                                               u32* other_state, const u8* other_block,
                                                               std::size_t count) {
  ShaLane one = load_lane(one_state), other = load_lane(other_state);
  for (; count > 0; count--, one_block += kBlock, other_block += kBlock) {
    const ShaLane one_before = one, other_before = other;
    load_words(one, one_block);
    load_words(other, other_block);
#pragma GCC unroll 16
    for (int quad = 0; quad < 16; quad++) {
      four_rounds(one, quad);
      four_rounds(other, quad);
    }
    add(one, one_before);
    add(other, other_before);
  }
  store_lane(one, one_state);
  store_lane(other, other_state);
}
#undef MCKPT_SHA
#endif

}  // namespace

Sha256::Compress Sha256::best_compress() {
#if defined(__x86_64__)
  static const bool has_sha = [] {
    // __builtin_cpu_supports does not know "sha" in the oldest compilers that build this.
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b >> 29 & 1) && __builtin_cpu_supports("sse4.1");
  }();
  if (has_sha) return compress_sha_ni;
#endif
  return compress_portable;
}

Sha256 Sha256::portable() {
  Sha256 sha;
  sha.compress_ = compress_portable;
  return sha;
}

// Completes the block that has begun with the first bytes, if there is one, and takes these bytes off.
void Sha256::end_block(std::span<const u8>& bytes) {
  total_bytes_ += bytes.size();
  if (pending_bytes_ == 0) return;
  std::size_t n = std::min(bytes.size(), kBlock - pending_bytes_);
  std::copy_n(bytes.begin(), n, pending_.begin() + static_cast<std::ptrdiff_t>(pending_bytes_));
  pending_bytes_ += n;
  bytes = bytes.subspan(n);
  if (pending_bytes_ < kBlock) return;
  compress_(state_.data(), pending_.data(), 1);
  pending_bytes_ = 0;
}

// Takes whole blocks, and keeps what is left for the next call.
void Sha256::keep(std::span<const u8> bytes) {
  if (bytes.empty()) return;
  std::size_t blocks = bytes.size() / kBlock;
  compress_(state_.data(), bytes.data(), blocks);
  bytes = bytes.subspan(blocks * kBlock);
  std::copy(bytes.begin(), bytes.end(), pending_.begin());
  pending_bytes_ = bytes.size();
}

void Sha256::update(std::span<const u8> bytes) {
  end_block(bytes);
  keep(bytes);
}

void Sha256::update_both(Sha256& one, Sha256& other, std::span<const u8> bytes) {
  std::span<const u8> of_one = bytes, of_other = bytes;
  one.end_block(of_one);
  other.end_block(of_other);
#if defined(__x86_64__)
  if (one.compress_ == compress_sha_ni && other.compress_ == compress_sha_ni) {
    std::size_t blocks = std::min(of_one.size(), of_other.size()) / kBlock;
    compress_two_sha_ni(one.state_.data(), of_one.data(), other.state_.data(), of_other.data(), blocks);
    of_one = of_one.subspan(blocks * kBlock), of_other = of_other.subspan(blocks * kBlock);
  }
#endif
  one.keep(of_one);
  other.keep(of_other);
}

std::array<u8, 32> Sha256::digest() {
  u64 bits = total_bytes_ * 8;
  std::array<u8, 2 * kBlock> tail{};
  tail[0] = 0x80;
  // A one bit, zeros, and the length in bits as the last 8 bytes of a block.
  std::size_t length = (pending_bytes_ < kBlock - 8 ? kBlock : 2 * kBlock) - pending_bytes_;
  for (std::size_t i = 0; i < 8; i++) tail[length - 1 - i] = static_cast<u8>(bits >> (8 * i));
  update(std::span(tail).first(length));
  std::array<u8, 32> out;
  for (std::size_t i = 0; i < 32; i++) out[i] = static_cast<u8>(state_[i / 4] >> (24 - 8 * (i % 4)));
  return out;
}

std::string Sha256::hex_digest() {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  for (u8 b : digest()) out += {kHex[b >> 4], kHex[b & 15]};
  return out;
}

}  // namespace mckpt::impl
