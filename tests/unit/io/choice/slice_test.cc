#include "io/choice/slice.h"

#include <gtest/gtest.h>

#include "core/base/text.h"
#include "tests/support/throws.h"

namespace mckpt::impl {
namespace {

std::string ranges(std::string_view slice, std::vector<i64> dims) {
  std::string out;
  for (const SliceRange& r : parse_slice(slice, dims))
    out += cat(out.empty() ? "" : " ", r.begin, r.single ? "" : cat("..", r.end));
  return out;
}

TEST(Slice, MeansWhatPythonMeans) {
  EXPECT_EQ(ranges("", {4, 8}), "0..4 0..8");
  EXPECT_EQ(ranges("0:4, :8", {10, 10}), "0..4 0..8");
  EXPECT_EQ(ranges("2", {4, 8}), "2 0..8");
  EXPECT_EQ(ranges("-1,-3:", {4, 8}), "3 5..8");
  EXPECT_EQ(ranges("..., 1", {4, 8, 2}), "0..4 0..8 1");
  EXPECT_EQ(ranges("1, ..., 1", {4, 8}), "1 1");
  EXPECT_EQ(ranges("...", {}), "");
  EXPECT_EQ(ranges("2:100", {4}), "2..4");
  EXPECT_EQ(ranges("3:1", {4}), "3..3");
  EXPECT_EQ(ranges("-100:2", {4}), "0..2");
}

TEST(Slice, RefusesWhatIsNone) {
  for (const char* slice : {"4", "-5", "a", "0:2:2", "0,0", "1,", "..., ...", "99999999999999999999", "1 2"})
    EXPECT_EQ(thrown_by([&] { ranges(slice, {4}); }).substr(0, 6), "MC0001") << slice;
}

TEST(Slice, StandsBehindTheLastBracketOfTheName) {
  EXPECT_EQ(split_sliced_name("w[0:4]").name, "w");
  EXPECT_EQ(split_sliced_name("w[0:4]").slice, "0:4");
  EXPECT_EQ(split_sliced_name("w[1][0]").name, "w[1]");
  EXPECT_FALSE(split_sliced_name("w").sliced);
  EXPECT_FALSE(split_sliced_name("w[1]x").sliced);
}

}  // namespace
}  // namespace mckpt::impl
