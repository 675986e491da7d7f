// The hash multiplies two keyed words to 128 bits and folds them, as wyhash does: 16 bytes a step. The last
// step takes what is left, 0 to 16 bytes, as two words. The key is drawn once, before main(); hashes are
// never stored, so they may differ from run to run.
#include "core/base/name_hash.h"

#include <cstring>
#include <random>

#include "core/base/int.h"

namespace mckpt::impl {
namespace {

struct Key {
  u64 a, b;
};

// Random numbers of the system; two words of 64 bits.
Key draw_key() {
  std::random_device random;
  auto word = [&] { return u64{random()} << 32 | random(); };
  return {word(), word()};
}

const Key kKey = draw_key();

// pre: at most 8 bytes. Missing bytes are 0; the length is hashed too, so "a" and "a\0" differ. An empty name
// may have no address, which memcpy does not take.
u64 load(const char* from, std::size_t bytes) {
  u64 v = 0;
  if (bytes > 0) std::memcpy(&v, from, bytes);
  return v;
}

// The product depends on every bit of both words, and folding keeps its upper half.
u64 mix(u64 x, u64 y) {
  unsigned __int128 product = static_cast<unsigned __int128>(x) * y;
  return static_cast<u64>(product) ^ static_cast<u64>(product >> 64);
}

}  // namespace

std::size_t NameHash::operator()(std::string_view name) const {
  const char* at = name.data();
  std::size_t left = name.size();
  u64 h = kKey.b ^ left;
  for (; left > 16; at += 16, left -= 16) h = mix(load(at, 8) ^ kKey.a, load(at + 8, 8) ^ h);
  std::size_t low = left < 8 ? left : 8;
  h = mix(load(at, low) ^ kKey.a, load(at + low, left - low) ^ h);
  return mix(h ^ kKey.a, 0x9e3779b97f4a7c15);
}

}  // namespace mckpt::impl
