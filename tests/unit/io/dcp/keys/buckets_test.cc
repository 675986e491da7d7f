// Padding of the buckets of a distributed optimizer, by the chunks of one or several ranks.
#include "io/dcp/keys/buckets.h"

#include <gtest/gtest.h>

#include "tests/support/table_store.h"

namespace mckpt::impl {
namespace buckets_test {

using Stretches = std::vector<std::pair<i64, i64>>;
constexpr const char* kBucket =
    "optimizer.distributed.dp_group_idx_0.gbuf_idx_0.dtype_(torch.bfloat16, "
    "torch.float32).bucket_idx_0.param";

struct Piece {
  i64 begin, end;
  i32 rank = 0;
};

TableStore store_of(std::string name, const std::vector<Piece>& pieces) {
  TableStore store("/");
  TableStore::Tensor t{std::move(name), DType::kF32, {0}, {}};
  for (const Piece& p : pieces) {
    t.dims[0] = std::max(t.dims[0], p.end);
    t.pieces.push_back({{p.begin}, {p.end - p.begin}, {}, p.rank});
  }
  store.tensors.push_back(std::move(t));
  return store;
}

Stretches padding_of(std::string name, const std::vector<Piece>& pieces) {
  return bucket_padding(store_of(std::move(name), pieces), 0);
}

// Stretches that touch are one.
Stretches joined(const Stretches& stretches) {
  Stretches out;
  for (auto [begin, end] : stretches)
    if (!out.empty() && out.back().second == begin)
      out.back().second = end;
    else
      out.emplace_back(begin, end);
  return out;
}

TEST(Buckets, AreKnownByTheirNames) {
  EXPECT_TRUE(is_bucket(kBucket));
  EXPECT_TRUE(
      is_bucket("chained_1.optimizer.distributed.dp_group_idx_3.gbuf_idx_0.dtype_x.bucket_idx_2.exp_avg"));
  EXPECT_FALSE(is_bucket("optimizer.state.param.decoder.layers.mlp.linear_fc1.weight"));
  EXPECT_FALSE(is_bucket("optimizer.distributed.dp_group_idx_0.per_bucket_numel/shard_0_1"));
  EXPECT_TRUE(is_gathered_states("optimizer.distributed.dp_group_idx_0.param_state/shard_0_1"));
  EXPECT_TRUE(is_gathered_states("chained_0.optimizer.distributed.dp_group_idx_12.param_state/shard_0_1"));
  EXPECT_FALSE(is_gathered_states("optimizer.distributed.dp_group_idx_0.optimizer/shard_0_1"));
}

TEST(Buckets, HavePaddingWhereAParameterEndsBeforeAMultipleOf64) {
  EXPECT_EQ(padding_of(kBucket, {{0, 1344}, {1344, 1368}, {1368, 1408}, {1408, 2272}}),
            (Stretches{{1368, 1408}}));
  EXPECT_EQ(padding_of(kBucket, {{0, 10}, {10, 64}, {64, 74}, {74, 128}, {128, 138}}),
            (Stretches{{10, 64}, {74, 128}}));
  // Chunks come in any order, and empty ones are none.
  EXPECT_EQ(padding_of(kBucket, {{64, 128}, {24, 64}, {0, 24}, {24, 24}}), (Stretches{{24, 64}}));
  EXPECT_EQ(padding_of("decoder.weight", {{0, 24}, {24, 64}}), Stretches{});
}

// Four ranks share a bucket of 128 items, 32 each.
TEST(Buckets, AreCutByTheSharesOfRanks) {
  // A parameter of 90 items, and 38 of padding, over three ranks.
  EXPECT_EQ(padding_of(kBucket, {{0, 32, 0}, {32, 64, 1}, {64, 90, 2}, {90, 96, 2}, {96, 128, 3}}),
            (Stretches{{32, 64}, {90, 96}, {96, 128}}));
  // A parameter goes on in the share of the next rank and ends there.
  EXPECT_EQ(padding_of(kBucket, {{0, 32, 0}, {32, 40, 1}, {40, 64, 1}, {64, 128, 2}}), (Stretches{{40, 64}}));
  EXPECT_EQ(padding_of(kBucket, {{0, 32, 0}, {32, 200, 1}, {200, 256, 1}}), (Stretches{{200, 256}}));
}

// However the stretches are given to ranks, each of them as one chunk.
TEST(Buckets, HaveStretchesThatShowTheSamePadding) {
  const std::vector<Piece> buckets[] = {
      {{0, 1344}, {1344, 1368}, {1368, 1408}, {1408, 2272}},
      {{0, 10}, {10, 64}, {64, 74}, {74, 128}, {128, 138}},
      {{0, 32, 0}, {32, 64, 1}, {64, 90, 2}, {90, 96, 2}, {96, 128, 3}},
      {{0, 32, 0}, {32, 40, 1}, {40, 64, 1}, {64, 128, 2}},
      {{0, 32, 0}, {32, 200, 1}, {200, 256, 1}},
      {{0, 70, 0}, {70, 80, 0}, {80, 128, 1}, {128, 140, 1}, {140, 150, 2}, {150, 192, 2}},
  };
  for (const std::vector<Piece>& bucket : buckets) {
    const Stretches padding = joined(padding_of(kBucket, bucket));
    const Stretches stretches = bucket_stretches(store_of(kBucket, bucket), 0);
    for (i32 each = 1; each <= 4; each++) {
      std::vector<Piece> again;
      for (i32 s = 0; s < std::ssize(stretches); s++)
        again.push_back({stretches[s].first, stretches[s].second, s / each});
      EXPECT_EQ(joined(padding_of(kBucket, again)), padding) << each << " chunks a rank";
    }
  }
  EXPECT_EQ(bucket_stretches(store_of(kBucket, buckets[4]), 0), (Stretches{{0, 200}, {200, 256}}));
}

}  // namespace buckets_test
}  // namespace mckpt::impl
