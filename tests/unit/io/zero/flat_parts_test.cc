#include "io/zero/flat_parts.h"

#include <gtest/gtest.h>

#include <random>

namespace mckpt::impl {
namespace flat_parts_test {

TEST(FlatParts, CutAParameterWhereAPartEnds) {
  FlatParts parts;
  parts.add(0, 0, 7);
  parts.add(1, 7, 0);
  parts.add(2, 7, 6);
  std::vector<ZeroStretch> out;
  parts.cut(4, {0, 7}, out);
  EXPECT_EQ(out, (std::vector<ZeroStretch>{{0, 4, {0, 3}}, {2, 0, {3, 7}}}));
  EXPECT_EQ(parts.end(), 13);
}

// Items one by one, as a naive reader would look for them; also where parts are missing.
TEST(FlatParts, FindEveryItemThatIsThere) {
  std::mt19937 random(5);
  auto below = [&](i64 n) { return static_cast<i64>(random() % static_cast<u32>(n)); };
  for (int round = 0; round < 2000; round++) {
    FlatParts parts;
    std::vector<std::pair<i64, i64>> where;  // part and item in it; part -1: missing
    for (i64 p = 0, count = 1 + below(5); p < count; p++) {
      const i64 items = below(6);
      const bool missing = below(4) == 0;
      if (!missing) parts.add(p, std::ssize(where), items);
      for (i64 i = 0; i < items; i++) where.emplace_back(missing ? -1 : p, i);
    }
    const i64 begin = below(std::ssize(where) + 1), count = below(std::ssize(where) - begin + 1),
              first = below(10);
    std::vector<ZeroStretch> out;
    parts.cut(begin, {first, first + count}, out);
    std::vector<std::pair<i64, i64>> found(static_cast<std::size_t>(count), {-1, 0});
    for (const ZeroStretch& s : out)
      for (i64 i = 0; i < s.items.items(); i++) found[s.items.begin - first + i] = {s.part, s.begin + i};
    for (i64 i = 0; i < count; i++) {
      EXPECT_EQ(found[i].first, where[begin + i].first);
      if (found[i].first >= 0) {
        EXPECT_EQ(found[i].second, where[begin + i].second);
      }
    }
  }
}

}  // namespace flat_parts_test
}  // namespace mckpt::impl
