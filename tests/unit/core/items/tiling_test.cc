#include "core/items/tiling.h"

#include <gtest/gtest.h>

#include "tests/support/run_samples.h"

namespace mckpt::impl {
namespace tiling_test {

// By counting visits. The first item at fault, as tiling_fault reports it.
std::optional<TilingFault> naive(const std::vector<ItemRun>& runs, i64 items) {
  std::vector<int> visits(static_cast<std::size_t>(items));
  for (const ItemRun& r : runs)
    for (i64 item : items_in_order(r)) visits[static_cast<std::size_t>(item)]++;
  for (i64 i = 0; i < items; i++)
    if (int n = visits[static_cast<std::size_t>(i)]; n != 1) return TilingFault{i, n == 0 ? 0 : 2};
  return std::nullopt;
}

void expect_same(const std::vector<ItemRun>& runs, i64 items) {
  auto mine = tiling_fault(runs, items), theirs = naive(runs, items);
  ASSERT_EQ(mine.has_value(), theirs.has_value()) << to_string(runs) << " of " << items;
  if (mine) {
    ASSERT_EQ(mine->times, theirs->times) << to_string(runs) << " of " << items;
    ASSERT_EQ(mine->item, theirs->item) << to_string(runs) << " of " << items;
  }
}

// Breaks [0, items) into random runs that tile it: boxes of an a x b x c grid, some of them cut.
std::vector<ItemRun> random_tiling(std::mt19937& random, i64 a, i64 b, i64 c) {
  auto upto = [&](i64 n) { return std::uniform_int_distribution<i64>(0, n)(random); };
  std::vector<ItemRun> runs;
  i64 columns = 1 + upto(c - 1), rows = 1 + upto(a - 1);
  for (ItemRange r : {ItemRange{0, rows}, ItemRange{rows, a}})
    for (ItemRange k : {ItemRange{0, columns}, ItemRange{columns, c}}) {
      if (r.empty() || k.empty()) continue;
      ItemRun box{0, r.begin * b * c + k.begin, k.items(), {c, b}, {b * c, r.items()}};
      if (upto(1)) {  // the same box, column by column
        for (i64 j = k.begin; j < k.end; j++)
          runs.push_back({0, r.begin * b * c + j, 1, {b * c, r.items()}, {c, b}});
      } else {
        i64 at = upto(box.items());
        cut(box, {0, at}, runs);
        cut(box, {at, box.items()}, runs);
      }
    }
  std::shuffle(runs.begin(), runs.end(), random);
  return runs;
}

TEST(Tiling, AgreesWithCountingOnTilingsAndOnBrokenOnes) {
  std::mt19937 random(7);
  int good = 0;
  for (int n = 0; n < 12000; n++) {
    auto size = [&] { return std::uniform_int_distribution<i64>(1, 5)(random); };
    i64 a = size(), b = size(), c = size();
    std::vector<ItemRun> runs = random_tiling(random, a, b, c);
    good += !tiling_fault(runs, a * b * c).has_value();
    expect_same(runs, a * b * c);
    ItemRun& hurt = runs[std::uniform_int_distribution<std::size_t>(0, runs.size() - 1)(random)];
    switch (n % 4) {
      case 0:
        runs.push_back(hurt);
        break;
      case 1:
        hurt.length--;
        break;
      case 2:
        hurt.begin += hurt.end() < a * b * c;
        break;
      case 3:
        std::swap(hurt, runs.back());
        runs.pop_back();
        break;
    }
    expect_same(runs, a * b * c);
  }
  EXPECT_EQ(good, 12000);
}

TEST(Tiling, AgreesWithCountingOnArbitraryRuns) {
  std::mt19937 random(8);
  for (int n = 0; n < 20000; n++) {
    std::vector<ItemRun> runs;
    for (int i = n % 5; i >= 0; i--) runs.push_back(random_run(random, 60));
    expect_same(runs, 60);
  }
}

TEST(Tiling, EvenAndOddColumnsOfFusedExpertsTile) {
  // [E, H, 2I] with gate in the even and up in the odd columns, each read transposed: as large as in real
  // models.
  const i64 experts = 128, h = 2880, i = 2880;
  std::vector<ItemRun> runs;
  for (i64 e = 0; e < experts; e++)
    for (i64 odd = 0; odd < 2; odd++) runs.push_back({0, e * h * 2 * i + odd, 1, {2 * i, h}, {2, i}});
  EXPECT_FALSE(tiling_fault(runs, experts * h * 2 * i).has_value());
  runs[77].begin ^= 1;
  auto fault = tiling_fault(runs, experts * h * 2 * i);
  ASSERT_TRUE(fault.has_value());
  EXPECT_EQ(fault->item, 38 * h * 2 * i);
  EXPECT_EQ(fault->times, 2);
}

TEST(Tiling, RangesTile) {
  std::vector<ItemRange> cuts = {{5, 9}, {0, 5}, {9, 9}, {9, 12}};
  EXPECT_FALSE(tiling_fault(cuts, 12).has_value());
  EXPECT_EQ(tiling_fault(cuts, 13)->item, 12);
  cuts.push_back({11, 12});
  EXPECT_EQ(tiling_fault(cuts, 12)->times, 2);
}

}  // namespace tiling_test
}  // namespace mckpt::impl
