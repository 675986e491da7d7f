#include "io/card/file_sums.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "io/file/crc32.h"
#include "io/file/file.h"
#include "io/sums/sha256.h"

namespace mckpt::impl {
namespace {

std::string sha256(std::span<const u8> bytes) {
  Sha256 sum = Sha256::portable();
  sum.update(bytes);
  return sum.hex_digest();
}

std::vector<u8> some_bytes(i64 count) {
  std::vector<u8> bytes(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < bytes.size(); i++) bytes[i] = static_cast<u8>(i * 31 + i / 253);
  return bytes;
}

// Compares with the sums of each part, and of each stretch of no part, one by one.
void expect_sums(i64 size, std::vector<FilePart> parts) {
  const std::vector<u8> bytes = some_bytes(size);
  const std::span<const u8> all(bytes);
  auto at = [&](i64 offset, i64 count) {
    return all.subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(count));
  };
  std::ranges::sort(parts);
  i64 told = 0;
  FileSums sums = sum_file(MemorySource(all), parts, [&](i64 n) { told += n; });
  EXPECT_EQ(told, size);
  EXPECT_EQ(sums.sha256, sha256(all));
  ASSERT_EQ(sums.parts.size(), parts.size());
  std::vector<bool> in_part(bytes.size());
  for (std::size_t p = 0; p < parts.size(); p++) {
    EXPECT_EQ(sums.parts[p], sha256(at(parts[p].offset, parts[p].bytes))) << parts[p].offset;
    std::fill_n(in_part.begin() + parts[p].offset, parts[p].bytes, true);
  }
  std::vector<bool> in_other(bytes.size());
  for (const SummedStretch& s : sums.others) {
    EXPECT_EQ(s.crc32, crc32(0, at(s.offset, s.bytes)));
    EXPECT_TRUE(s.offset == 0 || in_part[static_cast<std::size_t>(s.offset) - 1])
        << "stretches are as long as can be";
    std::fill_n(in_other.begin() + s.offset, s.bytes, true);
  }
  in_part.flip();
  EXPECT_EQ(in_other, in_part) << "each byte is in a part or in a stretch";
}

TEST(FileSums, HasEachPartAndWhatIsBetween) {
  expect_sums(0, {});
  expect_sums(1000, {});
  expect_sums(1000, {{0, 1000}});
  expect_sums(1000, {{0, 1}, {1, 63}, {64, 64}, {200, 7}, {999, 1}});
}

TEST(FileSums, HasPartsThatOverlap) {
  expect_sums(5000, {{10, 4000}, {10, 10}, {11, 4989}, {500, 100}, {550, 100}, {4999, 1}});
}

TEST(FileSums, HasPartsThatPassTheWindow) {
  const i64 mib = 1 << 20;
  expect_sums(3 * mib + 77, {{5, mib - 5}, {mib, mib + 1}, {2 * mib - 1, 2}, {2 * mib + 100, mib - 23}});
}

}  // namespace
}  // namespace mckpt::impl
