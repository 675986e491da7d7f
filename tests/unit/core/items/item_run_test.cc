#include "core/items/item_run.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "tests/support/run_samples.h"

namespace mckpt::impl {
namespace item_run_test {

std::vector<i64> items_in_order(const std::vector<ItemRun>& runs) {
  std::vector<i64> all;
  for (const ItemRun& r : runs)
    for (i64 item : mckpt::impl::items_in_order(r)) all.push_back(item);
  return all;
}

TEST(ItemRun, DescribesRowsColumnsAndTransposes) {
  ItemRun rows{0, 8, 8, {}, {}};               // rows [2, 4) of a 6 x 4 matrix
  ItemRun columns{0, 1, 2, {4, 3}, {}};        // columns [1, 3) of a 3 x 4 matrix
  ItemRun transpose{0, 0, 1, {4, 3}, {1, 4}};  // of a 3 x 4 matrix
  EXPECT_EQ(items_in_order({rows}), (std::vector<i64>{8, 9, 10, 11, 12, 13, 14, 15}));
  EXPECT_EQ(items_in_order({columns}), (std::vector<i64>{1, 2, 5, 6, 9, 10}));
  EXPECT_EQ(items_in_order({transpose}), (std::vector<i64>{0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11}));
  EXPECT_EQ(to_string(transpose), "[0+1 x3/4 x4/1]");
  EXPECT_EQ(to_string(ItemRun{2, 12, 4, {10, 3}, {}}), "2[12+4 x3/10]");
}

TEST(ItemRun, AtAndEndAgreeWithTheWalk) {
  std::mt19937 random(1);
  for (int n = 0; n < 5000; n++) {
    ItemRun r = random_run(random, 200);
    std::vector<i64> walk = mckpt::impl::items_in_order(r);
    ASSERT_EQ(static_cast<i64>(walk.size()), r.items());
    for (std::size_t i = 0; i < walk.size(); i++)
      ASSERT_EQ(r.at(static_cast<i64>(i)), walk[i]) << to_string(r);
    ASSERT_EQ(r.end(), *std::max_element(walk.begin(), walk.end()) + 1) << to_string(r);
  }
}

TEST(ItemRun, CanonicalKeepsTheOrderAndIsUnique) {
  std::mt19937 random(2);
  for (int n = 0; n < 20000; n++) {
    ItemRun r = random_run(random, 200), c = canonical(r);
    ASSERT_EQ(mckpt::impl::items_in_order(c), mckpt::impl::items_in_order(r))
        << to_string(r) << " -> " << to_string(c);
    ASSERT_EQ(canonical(c), c) << to_string(c);
  }
  EXPECT_EQ(to_string(canonical({0, 5, 2, {2, 3}, {6, 4}})), "[5+24]");
  EXPECT_EQ(to_string(canonical({0, 5, 2, {4, 3}, {12, 4}})), "[5+2 x12/4]");
}

TEST(ItemRun, EveryCutIsTheSliceOfTheWalkInAtMostFiveRuns) {
  std::mt19937 random(3);
  for (int n = 0; n < 1500; n++) {
    ItemRun r = random_run(random, 150);
    std::vector<i64> walk = mckpt::impl::items_in_order(r);
    for (i64 a = 0; a <= r.items(); a++)
      for (i64 b = a; b <= r.items(); b++) {
        std::vector<ItemRun> pieces;
        cut(r, {a, b}, pieces);
        ASSERT_LE(pieces.size(), 5u);
        ASSERT_EQ(items_in_order(pieces), std::vector<i64>(walk.begin() + a, walk.begin() + b))
            << to_string(r) << " at " << a << ".." << b << " gave " << to_string(pieces);
      }
  }
}

TEST(ItemRun, ListsAreCutAcrossTheirRuns) {
  std::vector<ItemRun> runs = {{0, 0, 4, {}, {}}, {1, 10, 2, {5, 2}, {}}, {0, 4, 3, {}, {}}};
  EXPECT_EQ(to_string(cut(runs, {2, 9})), "[2+2]1[10+2 x2/5][4+1]");
  EXPECT_EQ(to_string(cut(runs, {4, 5})), "1[10+1]");
  EXPECT_EQ(cut(runs, {11, 11}).size(), 0u);
  EXPECT_EQ(items_of(runs), 11);
}

TEST(ItemRun, CheckRefusesWhatIsNotAWalkOfTheTensor) {
  auto code = [](ItemRun r, i64 items) {
    try {
      check_run(r, items);
      return std::string("ok");
    } catch (const Error& e) {
      return code_name(e.code());
    }
  };
  const i64 huge = i64{1} << 62;
  EXPECT_EQ(code({0, 0, 12, {}, {}}, 12), "ok");
  EXPECT_EQ(code({0, 1, 12, {}, {}}, 12), "MC0104");
  EXPECT_EQ(code({0, -1, 2, {}, {}}, 12), "MC0104");
  EXPECT_EQ(code({0, 0, 2, {1, 3}, {}}, 12), "MC0104");      // rows overlap
  EXPECT_EQ(code({0, 0, 1, {2, 3}, {4, 2}}, 12), "MC0104");  // the outer loop steps into the inner one
  EXPECT_EQ(code({0, 0, 1, {4, 3}, {1, 4}}, 12), "ok");
  EXPECT_EQ(code({0, 0, huge, {huge, 4}, {}}, 12), "MC0101");
  EXPECT_EQ(code({0, 0, 0, {huge, 4}, {huge, 1}}, 12), "ok");  // no items at all
}

}  // namespace item_run_test
}  // namespace mckpt::impl
