#include "live/cuda/gpu_choice.h"

#include <gtest/gtest.h>

#include "tests/support/throws.h"

namespace mckpt::impl {
namespace {

std::vector<GpuId> gpus(const std::string& names) {
  std::vector<GpuId> ids;
  for (char c : names) ids.push_back({static_cast<u8>(c)});
  return ids;
}

// The GPUs that the ranks take, of those that each sees.
std::string taken(const std::vector<std::string>& seen) {
  std::vector<std::vector<GpuId>> usable;
  for (const std::string& names : seen) usable.push_back(gpus(names));
  std::vector<i32> places = choose_gpus(usable);
  std::string out;
  for (std::size_t r = 0; r < seen.size(); r++) out += seen[r][static_cast<std::size_t>(places[r])];
  return out;
}

TEST(GpuChoice, RanksOfAHostTakeItsGpusInOrder) {
  EXPECT_EQ(taken({"abcd"}), "a");
  EXPECT_EQ(taken({"abcd", "abcd", "abcd"}), "abc");
  EXPECT_EQ(taken({"ab", "cd", "ab", "cd"}), "acbd");  // two hosts in turn
}

TEST(GpuChoice, RanksTakeWhatTheLauncherShowsThem) {
  EXPECT_EQ(taken({"a", "b", "c"}), "abc");
  EXPECT_EQ(taken({"ab", "ba"}), "ab");
}

TEST(GpuChoice, MoreRanksThanGpusAreRefusedWithBothNumbers) {
  EXPECT_EQ(
      thrown_by([] {
        taken({"ab", "ab", "ab"});
      }),
      "MC0201 rank 2 has no GPU of its own: expected at most as many ranks as there are GPUs: 2, found 3 "
      "ranks that see the same GPUs");
}

}  // namespace
}  // namespace mckpt::impl
