// Sums of stretches of a file and of the bytes around them, against the sum of a copy without the stretches.
#include "io/listing/stretches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "io/file/crc32.h"
#include "io/file/file.h"

namespace mckpt::impl {
namespace stretches_test {

std::vector<u8> random_bytes(i64 count) {
  std::mt19937 random(7);
  std::vector<u8> out(static_cast<std::size_t>(count));
  for (u8& b : out) b = static_cast<u8>(random());
  return out;
}

// The naive way.
u32 sum_without(std::span<const u8> file, std::span<const SummedStretch> stretches, i64 bytes) {
  std::vector<u8> kept;
  for (i64 at = 0; at < bytes; at++)
    if (std::ranges::none_of(stretches,
                             [&](const SummedStretch& s) { return s.offset <= at && at < s.end(); }))
      kept.push_back(file[at]);
  return crc32(0, kept);
}

TEST(SumBytes, IsTheSumOfTheBytes) {
  const std::vector<u8> all = random_bytes((1 << 20) + 17);
  const MemorySource file(all);
  for (auto [begin, end] : {std::pair<i64, i64>(0, 0), {0, 5}, {3, 1 << 20}, {0, (1 << 20) + 17}}) {
    const std::span<const u8> bytes = std::span<const u8>(all).subspan(begin, end - begin);
    EXPECT_EQ(sum_bytes(0, file, begin, end), crc32(0, bytes)) << begin << " to " << end;
    EXPECT_EQ(sum_bytes(9, file, begin, end), crc32(9, bytes)) << begin << " to " << end;
  }
}

TEST(SumBytes, SaysHowFarItIs) {
  const std::vector<u8> all = random_bytes((1 << 20) + 17);
  const MemorySource file(all);
  i64 done = 0;
  sum_bytes(0, file, 5, file.size(), [&](i64 bytes) { done += bytes; });
  EXPECT_EQ(done, file.size() - 5);
}

TEST(SumOutside, LeavesTheStretchesOut) {
  const std::vector<u8> all = random_bytes(1000);
  const MemorySource file(all);
  const std::vector<std::vector<SummedStretch>> cases = {
      {}, {{0, 1000}}, {{0, 10}}, {{990, 10}}, {{10, 0}, {10, 20}, {30, 5}}, {{10, 50}, {20, 5}, {55, 45}}};
  for (const std::vector<SummedStretch>& stretches : cases)
    EXPECT_EQ(sum_outside(stretches, file, 1000), sum_without(all, stretches, 1000)) << stretches.size();
  EXPECT_EQ(sum_outside(std::vector<SummedStretch>{{10, 20}}, file, 40),
            sum_without(all, std::vector<SummedStretch>{{10, 20}}, 40));
}

}  // namespace stretches_test
}  // namespace mckpt::impl
