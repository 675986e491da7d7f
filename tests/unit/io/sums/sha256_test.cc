#include "io/sums/sha256.h"

#include <gtest/gtest.h>

namespace mckpt::impl {
namespace {

std::string digest(Sha256 sha, std::string_view text, std::size_t piece) {
  std::span<const u8> bytes(reinterpret_cast<const u8*>(text.data()), text.size());
  while (!bytes.empty()) {
    std::size_t n = std::min(piece, bytes.size());
    sha.update(bytes.first(n));
    bytes = bytes.subspan(n);
  }
  return sha.hex_digest();
}

struct Vector {
  std::string text;
  const char* sha256;
};

const Vector kVectors[] = {
    {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
    {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
    {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
     "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrs"
     "tnopqrstu",
     "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
    {std::string(1'000'000, 'a'), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
};

TEST(Sha256, AgreesWithThePublishedVectors) {
  for (const Vector& v : kVectors) {
    EXPECT_EQ(digest(Sha256(), v.text, v.text.size() + 1), v.sha256);
    EXPECT_EQ(digest(Sha256::portable(), v.text, v.text.size() + 1), v.sha256);
  }
}

TEST(Sha256, DoesNotDependOnThePiecesOrTheCode) {
  std::string text;
  for (int i = 0; i < 300; i++) text += static_cast<char>(i * 7);
  for (std::size_t length = 0; length <= text.size(); length++) {
    std::string_view part = std::string_view(text).substr(0, length);
    std::string whole = digest(Sha256(), part, 1000);
    for (std::size_t piece : {1, 63, 64, 65})
      EXPECT_EQ(digest(Sha256::portable(), part, piece), whole) << length;
  }
}

// Two streams that are at different places in their blocks, and take the same bytes.
TEST(Sha256, TakesBytesForTwoStreamsAtOnce) {
  std::vector<u8> bytes(1000);
  for (std::size_t i = 0; i < bytes.size(); i++) bytes[i] = static_cast<u8>(i * 7 + i / 251);
  const std::span<const u8> all(bytes);
  for (std::size_t ahead : {0, 1, 8, 63, 64, 100})
    for (std::size_t length : {0, 1, 55, 63, 64, 65, 127, 128, 129, 600, 899}) {
      Sha256 whole, part, portable = Sha256::portable(), plain;
      whole.update(all.first(ahead)), portable.update(all.first(ahead));
      Sha256::update_both(whole, part, all.subspan(ahead, length));
      Sha256::update_both(portable, plain, all.subspan(ahead, length));
      Sha256 expected_whole = Sha256::portable(), expected_part = Sha256::portable();
      expected_whole.update(all.first(ahead + length)), expected_part.update(all.subspan(ahead, length));
      const std::string of_whole = expected_whole.hex_digest(), of_part = expected_part.hex_digest();
      EXPECT_EQ(whole.hex_digest(), of_whole) << ahead << " " << length;
      EXPECT_EQ(part.hex_digest(), of_part) << ahead << " " << length;
      EXPECT_EQ(portable.hex_digest(), of_whole) << ahead << " " << length;
      EXPECT_EQ(plain.hex_digest(), of_part) << ahead << " " << length;
    }
}

}  // namespace
}  // namespace mckpt::impl
