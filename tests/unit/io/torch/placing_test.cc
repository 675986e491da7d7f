// Where pieces of DTensors are: both readings of a strided shard, and what is refused because sizes fit none.
#include "io/torch/placing.h"

#include <gtest/gtest.h>

#include <memory>
#include <numeric>

#include "core/base/text.h"

namespace mckpt::impl {
namespace {

using Kind = TorchPlacement::Kind;

TorchSharding sharding(std::vector<i64> global, std::vector<i64> mesh, std::vector<TorchPlacement> placements,
                       std::vector<int> order = {}, bool recorded = false) {
  auto m = std::make_shared<TorchMesh>();
  m->sizes = mesh;
  i64 ranks = 1;
  for (i64 size : mesh) ranks *= size;
  m->ranks.resize(static_cast<std::size_t>(ranks));
  std::iota(m->ranks.begin(), m->ranks.end(), i64{0});
  TorchSharding s;
  s.global = std::move(global);
  s.placements = std::move(placements);
  s.shard_order = std::move(order);
  s.order_is_recorded = recorded;
  s.mesh = m;
  return s;
}

// "0-2 6-8 | 3-5 9-11": the stretches of each rank along the only dimension; or what is wrong.
std::string placed(const TorchSharding& s, const std::vector<i64>& sizes) {
  std::vector<TorchPiece> pieces;
  for (std::size_t i = 0; i < sizes.size(); i++)
    pieces.push_back({.rank = static_cast<i64>(i), .sizes = {&sizes[i], 1}, .sharding = &s});
  if (std::string wrong = place_pieces(pieces); !wrong.empty()) return wrong;
  std::vector<std::string> out;
  for (const TorchPiece& p : pieces) {
    std::string ranges;
    for (const TorchStore::Piece& box : store_pieces(p, 0, 0)) {
      const i64 size = box.sizes.empty() ? p.sizes[0] : box.sizes[0];
      ranges += cat(ranges.empty() ? "" : " ", box.offsets[0], "-", box.offsets[0] + size - 1);
    }
    out.push_back(std::move(ranges));
  }
  std::string all;
  for (const std::string& o : out) all += cat(all.empty() ? "" : " | ", o);
  return all;
}

TEST(Placing, CutsBlocksOfAStridedShard) {
  const TorchSharding s = sharding({12}, {2}, {{Kind::kStridedShard, 0, 2}});
  EXPECT_EQ(placed(s, {6, 6}), "0-2 6-8 | 3-5 9-11");
  const TorchSharding uneven = sharding({11}, {2}, {{Kind::kStridedShard, 0, 3}});
  EXPECT_EQ(placed(uneven, {6, 5}), "0-1 4-5 8-9 | 2-3 6-7 10-10");
}

// FSDP2 over tensor parallelism: the mesh dimension to the right cuts first. 20 rows over 3 and 3 ranks are
// not what cuts from left to right would give: the sizes show it.
TEST(Placing, ReadsStridedShardsAsAnOrder) {
  const std::vector<TorchPlacement> placements = {{Kind::kStridedShard, 0, 2}, {Kind::kShard, 0}};
  EXPECT_EQ(placed(sharding({8}, {2, 2}, placements), {2, 2, 2, 2}), "0-1 | 4-5 | 2-3 | 6-7");
  const std::vector<TorchPlacement> three = {{Kind::kStridedShard, 0, 3}, {Kind::kShard, 0}};
  EXPECT_EQ(placed(sharding({20}, {3, 3}, three), {3, 3, 2, 3, 3, 2, 1, 1, 2}),
            "0-2 | 7-9 | 14-15 | 3-5 | 10-12 | 16-17 | 6-6 | 13-13 | 18-19");
}

TEST(Placing, ObeysARecordedOrder) {
  const std::vector<TorchPlacement> plain = {{Kind::kShard, 0}, {Kind::kShard, 0}};
  EXPECT_EQ(placed(sharding({8}, {2, 2}, plain, {0, 1}, true), {2, 2, 2, 2}), "0-1 | 2-3 | 4-5 | 6-7");
  EXPECT_EQ(placed(sharding({8}, {2, 2}, plain, {1, 0}, true), {2, 2, 2, 2}), "0-1 | 4-5 | 2-3 | 6-7");
  // Where the order is recorded, strided shards are what they are.
  const std::vector<TorchPlacement> strided = {{Kind::kStridedShard, 0, 2}, {Kind::kShard, 0}};
  EXPECT_EQ(placed(sharding({8}, {2, 2}, strided, {1, 0}, true), {2, 2, 2, 2}),
            "0-0 2-2 | 4-4 6-6 | 1-1 3-3 | 5-5 7-7");
}

// Plain shards of any sizes are placed one after the other; shards of blocks are not.
TEST(Placing, RefusesSizesOfNoReading) {
  EXPECT_EQ(placed(sharding({10}, {4}, {{Kind::kShard, 0}}), {4, 4, 2, 0}), "0-3 | 4-7 | 8-9 | 10-9");
  EXPECT_NE(placed(sharding({10}, {4}, {{Kind::kShard, 0}}), {4, 4, 4, 0}).find("more than the 10 items"),
            std::string::npos);
  const TorchSharding s = sharding({12}, {2}, {{Kind::kStridedShard, 0, 2}});
  EXPECT_EQ(placed(s, {8, 4}),
            "the pieces are not of the sizes that the placements say along dimension 0, of 12 items: 8, 4");
  EXPECT_EQ(to_string(s), "StridedShard(0, in 2 blocks) over a mesh of [2]");
  EXPECT_NE(placed(s, {6}).find("0-2 6-8"),
            std::string::npos);  // a rank is missing: the rule places the other one
  EXPECT_NE(placed(s, {8}).find("uneven pieces do not say where they begin"), std::string::npos);
}

TEST(Placing, RefusesMoreStretchesThanAnyoneHas) {
  const TorchSharding s = sharding({i64{1} << 40}, {2}, {{Kind::kStridedShard, 0, i64{1} << 30}});
  EXPECT_NE(placed(s, {i64{1} << 39, i64{1} << 39}).find("not of the sizes"), std::string::npos);
}

}  // namespace
}  // namespace mckpt::impl
