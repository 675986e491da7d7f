#include "core/fsdp/row_cuts.h"
#include "core/fsdp/flat_buffer.h"
#include "core/fsdp/strategy.h"
#include "core/items/shape.h"

#include <gtest/gtest.h>

namespace mckpt::impl::row_cuts_test {
namespace {

TEST(RowCuts, NameTheShardAndTheRow) {
  std::vector<Shape> shapes = {Shape({2, 6}), Shape({4, 5})};
  FlatBuffer buffer = pack(shapes, {.ranks = 2});
  std::vector<RowCut> cuts = row_cuts(buffer);
  ASSERT_EQ(cuts.size(), 1u);
  EXPECT_EQ(cuts[0].parameter, 1);
  EXPECT_EQ(cuts[0].item, 18);
  EXPECT_EQ(cuts[0].shard, 1);
  EXPECT_EQ(cuts[0].row, 3);
  EXPECT_EQ(cuts[0].row_items, 5);
}

TEST(RowCuts, AreNoneWhereEveryShardBeginsWithARow) {
  std::vector<Shape> shapes = {Shape({10, 4}), Shape({10})};
  EXPECT_TRUE(row_cuts(pack(shapes, {.ranks = 4})).empty());
  EXPECT_TRUE(
      row_cuts(pack(std::vector<Shape>{Shape({2, 6}), Shape({4, 5})}, {.engine = Engine::kV2, .ranks = 2}))
          .empty());
}

TEST(RowCuts, ANumberOfRanksWithoutThemIsTried) {
  std::vector<Shape> shapes = {Shape({14, 24}), Shape({8, 15}), Shape({38, 29}), Shape({39, 14})};
  EXPECT_FALSE(row_cuts(pack(shapes, {.ranks = 9})).empty());
  EXPECT_EQ(ranks_without_cuts(shapes, {.ranks = 9}), 3);
  EXPECT_TRUE(row_cuts(pack(shapes, {.ranks = 3})).empty());
  // None is near; and with instances the shards are not the ranks.
  EXPECT_EQ(ranks_without_cuts(std::vector<Shape>{Shape({2, 6}), Shape({4, 5})}, {.ranks = 2}), std::nullopt);
  EXPECT_EQ(ranks_without_cuts(shapes, {.ranks = 18, .hsdp = 2}), std::nullopt);
}

}  // namespace
}  // namespace mckpt::impl::row_cuts_test
