#include "core/items/move.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "tests/support/run_samples.h"

namespace mckpt::impl {
namespace move_test {

// (from, to) of every item, sorted.
std::vector<std::pair<i64, i64>> pairs(const std::vector<Move>& moves) {
  std::vector<std::pair<i64, i64>> all;
  for (const Move& m : moves) {
    std::vector<i64> from = items_in_order(m.source()), to = items_in_order(m.destination());
    for (std::size_t i = 0; i < from.size(); i++) all.push_back({from[i], to[i]});
  }
  std::sort(all.begin(), all.end());
  return all;
}

std::vector<std::pair<i64, i64>> kept(const Move& m, ItemRange window, bool of_source) {
  std::vector<std::pair<i64, i64>> all = pairs({m});
  std::erase_if(all, [&](auto& p) {
    i64 side = of_source ? p.first : p.second;
    return side < window.begin || side >= window.end;
  });
  return all;
}

TEST(Move, LaysARunOneItemAfterTheOther) {
  Move m = move_of({3, 1, 2, {4, 3}, {}}, 100);
  EXPECT_EQ(to_string(m), "copy 3[1+2 x3/4] -> [100+2 x3/2]");
  EXPECT_EQ(pairs({m}),
            (std::vector<std::pair<i64, i64>>{{1, 100}, {2, 101}, {5, 102}, {6, 103}, {9, 104}, {10, 105}}));
}

TEST(Move, ClipsToWindowsOfEitherSide) {
  std::mt19937 random(4);
  for (int n = 0; n < 400; n++) {
    Move m = move_of(random_run(random, 120), 7);
    i64 from_end = m.source().end(), to_end = m.destination().end();
    for (i64 a = std::max<i64>(m.from - 2, 0); a <= from_end + 1; a++)
      for (i64 b = a; b <= from_end + 2; b += 1 + n % 3) {
        std::vector<Move> out;
        clip_source(m, {a, b}, out);
        ASSERT_EQ(pairs(out), kept(m, {a, b}, true)) << to_string(m) << " in " << a << ".." << b;
        ASSERT_LE(out.size(), 7u);
      }
    for (i64 a = 5; a <= to_end; a += 3)
      for (i64 b = a; b <= to_end + 2; b += 2) {
        std::vector<Move> out;
        clip_destination(m, {a, b}, out);
        ASSERT_EQ(pairs(out), kept(m, {a, b}, false)) << to_string(m) << " in " << a << ".." << b;
      }
  }
}

TEST(Move, OverlapFindsEveryCommonItemOnce) {
  std::mt19937 random(5);
  for (int n = 0; n < 60000; n++) {
    ItemRun from = random_run(random, 90), to = random_run(random, 90);
    std::map<i64, i64> local;
    std::vector<i64> walk = items_in_order(from);
    for (std::size_t i = 0; i < walk.size(); i++) local[walk[i]] = static_cast<i64>(i);
    std::vector<std::pair<i64, i64>> expected;
    walk = items_in_order(to);
    for (std::size_t i = 0; i < walk.size(); i++)
      if (auto it = local.find(walk[i]); it != local.end())
        expected.push_back({it->second, static_cast<i64>(i)});
    std::sort(expected.begin(), expected.end());
    std::vector<Move> out;
    overlap(from, to, out);
    ASSERT_EQ(pairs(out), expected) << to_string(from) << " and " << to_string(to);
  }
}

TEST(Move, OverlapOfBoxesOfOneTensorIsOneMove) {
  // Columns [2, 6) of rows [1, 9) against columns [4, 8) of rows [3, 5) of a 10 x 8 tensor.
  std::vector<Move> out;
  overlap({0, 10, 4, {8, 8}, {}}, {0, 28, 4, {8, 2}, {}}, out);
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(to_string(out[0]), "copy [10+2 x2/4] -> [0+2 x2/4]");
}

TEST(Move, JoinedMovesDoTheSame) {
  std::mt19937 random(6);
  int joined = 0;
  for (int n = 0; n < 20000; n++) {
    Move whole = move_of(random_run(random, 60), 3);
    std::vector<Move> pieces;
    i64 at = std::uniform_int_distribution<i64>(0, whole.items())(random);
    clip_destination(whole, {0, 3 + at}, pieces);
    clip_destination(whole, {3 + at, 1000}, pieces);
    std::vector<std::pair<i64, i64>> before = pairs(pieces);
    for (std::size_t i = 1; i < pieces.size();)
      if (join(pieces[i - 1], pieces[i])) {
        pieces.erase(pieces.begin() + static_cast<std::ptrdiff_t>(i));
        joined++;
      } else {
        i++;
      }
    ASSERT_EQ(pairs(pieces), before) << to_string(whole) << " cut at " << at;
  }
  EXPECT_GT(joined, 1000);
}

TEST(Move, KindsAreNotJoinedWithEachOther) {
  Move copy = move_of({0, 0, 4, {}, {}}, 0), behind = move_of({0, 4, 4, {}, {}}, 4);
  behind.kind = MoveKind::kZero;
  EXPECT_FALSE(join(copy, behind));
  Move zero = move_of({0, 0, 4, {}, {}}, 4), more = move_of({0, 0, 2, {}, {}}, 8);
  zero.kind = more.kind = MoveKind::kZero;
  EXPECT_TRUE(join(zero, more));
  EXPECT_EQ(zero.length, 6);
}

}  // namespace move_test
}  // namespace mckpt::impl
