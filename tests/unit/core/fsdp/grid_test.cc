#include "core/fsdp/grid.h"
#include "core/base/error.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace mckpt::impl {
namespace grid_test {

std::string refusal(const Grid& g) {
  try {
    check_grid(g);
    return "ok";
  } catch (const Error& e) {
    return cat(code_name(e.code()), ": ", e.message());
  }
}

TEST(Grid, RanksStandWhereMegatronPutsThem) {
  Grid g;
  g.tp = 2, g.cp = 2, g.ep = 4, g.dp = 2, g.pp = 2;
  check_grid(g);
  EXPECT_EQ(g.world(), 16);
  EXPECT_EQ(g.edp(), 2);
  // rank 13 = stage 1, r 5: tp fastest, then cp, then dp; experts etp, ep, edp.
  EXPECT_EQ(cell_of(g, 13), (Cell{13, 1, 1, 0, 1, 0, 1, 1}));
  EXPECT_EQ(cell_of(g, 0), (Cell{}));
  EXPECT_EQ(cell_of(g, 7), (Cell{7, 0, 1, 1, 1, 0, 3, 1}));
  g.etp = 2, g.ep = 2;
  EXPECT_EQ(cell_of(g, 7), (Cell{7, 0, 1, 1, 1, 1, 1, 1}));
}

TEST(Grid, ContextRanksAreFastestAmongTheRanksOfABuffer) {
  Grid g;
  g.tp = 2, g.cp = 2, g.dp = 2;
  std::vector<i64> shards;
  for (i64 r = 0; r < 8; r += 2) shards.push_back(dense_place(g, cell_of(g, r)).shard);
  EXPECT_EQ(shards, (std::vector<i64>{0, 1, 2, 3}));
  EXPECT_EQ(dense_place(g, cell_of(g, 2)).world, 4);
}

TEST(Grid, HsdpCutsTheGroupInBlocksAndShardsTheInnerDimensionFirst) {
  // O = 2 instances of I = 2: with outer sharding a bucket of 64 goes to (o0,i0) [0,16), (o1,i0) [16,32), ...
  auto place = [](i64 d, HsdpOuter outer) { return place_of(d, 4, 2, outer); };
  EXPECT_EQ(place(0, HsdpOuter::kShard), (FsdpPlace{4, 0, 0, 0, 0}));
  EXPECT_EQ(place(1, HsdpOuter::kShard), (FsdpPlace{4, 2, 0, 0, 1}));
  EXPECT_EQ(place(2, HsdpOuter::kShard), (FsdpPlace{4, 1, 0, 1, 0}));
  EXPECT_EQ(place(3, HsdpOuter::kShard), (FsdpPlace{4, 3, 0, 1, 1}));
  EXPECT_EQ(place(1, HsdpOuter::kReplicate), (FsdpPlace{2, 1, 0, 0, 1}));
  EXPECT_EQ(place(2, HsdpOuter::kReplicate), (FsdpPlace{2, 0, 1, 1, 0}));
}

TEST(Grid, EveryRankHoldsOneShardOfItsMeshAndEachShardHasOneHolderPerReplica) {
  int grids = 0;
  for (i64 tp : {1, 2, 3})
    for (i64 cp : {1, 2})
      for (i64 ep : {1, 2, 4})
        for (i64 etp : {1, 2})
          for (i64 pp : {1, 2})
            for (i64 dp = 1; dp <= 8; dp++)
              for (i64 hsdp : {1, 2})
                for (HsdpOuter outer : {HsdpOuter::kReplicate, HsdpOuter::kShard}) {
                  Grid g{tp, cp, ep, etp, pp, dp, hsdp, outer};
                  if (refusal(g) != "ok") continue;
                  grids++;
                  std::set<std::vector<i64>> dense, expert, seen;
                  for (i64 rank = 0; rank < g.world(); rank++) {
                    Cell c = cell_of(g, rank);
                    seen.insert({c.pp, c.tp, c.cp, c.dp});
                    FsdpPlace d = dense_place(g, c), e = expert_place(g, c);
                    dense.insert({c.pp, c.tp, d.replica, d.shard});
                    expert.insert({c.pp, c.etp, c.ep, e.replica, e.shard});
                    ASSERT_LT(d.shard, d.world);
                    ASSERT_LT(e.shard, e.world);
                  }
                  ASSERT_EQ(static_cast<i64>(seen.size()), g.world());
                  ASSERT_EQ(static_cast<i64>(dense.size()), g.world()) << to_string(g);
                  ASSERT_EQ(static_cast<i64>(expert.size()), g.world()) << to_string(g);
                }
  EXPECT_GT(grids, 300);
}

TEST(Grid, SmallestDpIsTheLeastThatIsNotRefused) {
  for (i64 tp : {1, 2, 3, 4, 6})
    for (i64 cp : {1, 2, 3})
      for (i64 ep : {1, 2, 3, 4, 8})
        for (i64 etp : {1, 2})
          for (i64 hsdp : {1, 2, 3}) {
            Grid g{tp, cp, ep, etp, 1, 1, hsdp, HsdpOuter::kReplicate};
            i64 least = 1;
            for (;; least++) {
              g.dp = least;
              if (refusal(g) == "ok") break;
            }
            ASSERT_EQ(smallest_dp(g), least) << to_string(g);
          }
}

TEST(Grid, SizesThatDoNotFitAreRefusedByName) {
  Grid g;
  g.tp = 0;
  EXPECT_EQ(refusal(g), "MC0201: `tp` must be at least 1");
  g = {};
  g.ep = 4;
  EXPECT_EQ(refusal(g), "MC0201: the ranks of a stage (tp*cp*dp) do not divide by etp*ep");
  g = {};
  g.dp = 3, g.hsdp = 2;
  EXPECT_EQ(refusal(g), "MC0201: dp does not divide by hsdp");
  g = {};
  g.dp = 4, g.hsdp = 2, g.ep = 4;
  EXPECT_EQ(refusal(g),
            "MC0201: the expert data parallel size (tp*cp*dp / (etp*ep)) does not divide by hsdp");
  g = {};
  g.tp = i64{1} << 40, g.dp = i64{1} << 40;
  EXPECT_EQ(refusal(g).substr(0, 6), "MC0101");
  g = {};
  EXPECT_THROW(cell_of(g, 1), Error);
  EXPECT_THROW(cell_of(g, -1), Error);
  g.tp = -3;
  EXPECT_THROW(smallest_dp(g), Error);
}

}  // namespace grid_test
}  // namespace mckpt::impl
