#include "io/sums/sha1.h"

#include <gtest/gtest.h>

#include <string_view>

namespace mckpt::impl {
namespace {

std::string sha1_of(std::string_view text, std::size_t step = 1000) {
  Sha1 sum;
  for (std::size_t at = 0; at < text.size(); at += step) {
    std::string_view part = text.substr(at, step);
    sum.update({reinterpret_cast<const u8*>(part.data()), part.size()});
  }
  return sum.hex_digest();
}

// Examples of FIPS 180-4 and RFC 3174.
TEST(Sha1, HasTheDigestsOfTheStandard) {
  EXPECT_EQ(sha1_of(""), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
  EXPECT_EQ(sha1_of("abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
  EXPECT_EQ(sha1_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
  EXPECT_EQ(sha1_of(std::string(1'000'000, 'a')), "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
}

TEST(Sha1, DoesNotDependOnTheStretches) {
  const std::string text(300, 'x');
  for (std::size_t step : {1, 7, 63, 64, 65, 300}) EXPECT_EQ(sha1_of(text, step), sha1_of(text)) << step;
}

// git hash-object --stdin <<<hello
TEST(Sha1, IsGitsNameOfAFile) {
  EXPECT_EQ(sha1_of(std::string_view("blob 6\0hello\n", 13)), "ce013625030ba8dba906f756967f9e9ca394464a");
}

}  // namespace
}  // namespace mckpt::impl
