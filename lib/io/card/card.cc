// The root digest is OpenSSF model signing's: SHA-256 over the digests of the files, 32 bytes each, in the
// order of their names.
#include "io/card/card.h"

#include <algorithm>

#include "io/sums/sha256.h"

namespace mckpt::impl {
namespace {

u8 nibble(char c) { return static_cast<u8>(c <= '9' ? c - '0' : c - 'a' + 10); }

}  // namespace

i64 Card::bytes() const {
  i64 sum = 0;
  for (const CardFile& f : files) sum += f.bytes;
  return sum;
}

std::string Card::root() const {
  Sha256 sum;
  for (const CardFile& f : files) {
    std::vector<u8> digest;
    for (std::size_t i = 0; i + 1 < f.sha256.size(); i += 2)
      digest.push_back(static_cast<u8>(nibble(f.sha256[i]) << 4 | nibble(f.sha256[i + 1])));
    sum.update(digest);
  }
  return sum.hex_digest();
}

bool Card::sound() const {
  return std::ranges::all_of(findings, [](const Finding& f) { return f.warning; });
}

}  // namespace mckpt::impl
