// Shard maps of stores that are made up here: what is folded, what is not, faults, and the bounds. A map of
// single ranks is compared chunk by chunk in program/plot; here its boxes are unfolded into items where ranks
// share a column.
#include "page/data/shard_map.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <set>

#include "core/base/text.h"
#include "tests/support/table_store.h"

namespace mckpt::impl::shard_map_test {
namespace {

class RankStore : public TableStore {
 public:
  explicit RankStore(i64 ranks) : TableStore("ckpt") {
    ranks_ = ranks;
    for (i64 r = 0; r < ranks; r++) add_file(cat("rank_", r), 1000);
  }
  // Rows of a matrix: [first, count) of each rank.
  void add(std::string name, std::vector<i64> dims, const std::vector<std::tuple<i32, i64, i64>>& rows) {
    Tensor t{.name = std::move(name), .dims = dims, .pieces = {}};
    for (auto [rank, first, count] : rows) {
      std::vector<i64> offsets(dims.size()), sizes = dims;
      offsets[0] = first, sizes[0] = count;
      ChunkData data;
      data.file = rank;
      t.pieces.push_back({offsets, sizes, data, rank, false});
    }
    tensors.push_back(std::move(t));
  }
  ShardMap map(const ShardMapLimits& limits = {}) const {
    return shard_map(*this, natural_order(*this), limits);
  }
  void lose(i32 file) { files_[file].bytes = -1; }
};

// Items of a row of two dimensions that a column has, as (member, row) pairs.
std::set<std::pair<i64, i64>> rows_of(const ShardRow& row, i64 column) {
  std::set<std::pair<i64, i64>> out;
  for (const ShardBox& b : row.boxes)
    for (i64 m = 0; b.column == column && m < b.count; m++)
      for (i64 r = 0; r < b.sizes[0]; r++) EXPECT_TRUE(out.emplace(b.member + m, b.offsets[0] + r).second);
  return out;
}

TEST(ShardMap, FoldsLayersThatAreAlikeInEveryChunk) {
  RankStore store(2);
  for (i64 layer = 0; layer < 12; layer++)
    store.add(cat("m.layers.", layer, ".w"), {8, 3},
              {{0, 0, layer == 5 ? 4 : 6}, {1, layer == 5 ? 4 : 6, layer == 5 ? 4 : 2}});
  store.add("m.norm", {4}, {{1, 0, 4}});
  const ShardMap map = store.map();
  ASSERT_EQ(map.blocks.size(), 2u);
  EXPECT_EQ(map.blocks[0].count(), 12);
  ASSERT_EQ(map.blocks[0].kinds.size(), 1u);
  const std::vector<ShardVariant>& variants = map.blocks[0].kinds[0];
  ASSERT_EQ(variants.size(), 2u);
  EXPECT_EQ(number_ranges(variants[0].layers), (std::vector<NumberRange>{{0, 4}, {6, 11}}));
  EXPECT_EQ(variants[1].layers, (std::vector<i64>{5}));
  EXPECT_EQ(map.rows[variants[1].row].boxes[0].sizes[0], 4);
  EXPECT_EQ(map.blocks[1].section, "");
  EXPECT_EQ(map.tensors, 13);
  EXPECT_EQ(map.bytes, 12 * 24 * 4 + 16);
  EXPECT_EQ(map.columns[0].bytes, (11 * 6 + 4) * 3 * 4);
  EXPECT_EQ(map.columns[1].bytes, (11 * 2 + 4) * 3 * 4 + 16);
  EXPECT_EQ(map.faulty_tensors, 0);
}

TEST(ShardMap, BlocksOutsideLayersAreTitledByTheirPurpose) {
  RankStore store(1);
  for (const char* name : {"extra_state:rng.cpu", "lm_head.weight", "optim:state.norm.exp_avg"})
    store.add(name, {4}, {{0, 0, 4}});
  std::vector<std::string> titles;
  for (const ShardBlock& block : store.map().blocks) titles.push_back(block.title);
  EXPECT_EQ(titles, (std::vector<std::string>{"other, outside layers", "outside layers",
                                              "optimizer, outside layers"}));
}

TEST(ShardMap, DrawsMembersAsOneAndFindsTheAbsentOne) {
  RankStore store(4);
  for (i64 layer : {0, 1})
    for (i64 e = 0; e < 8; e++)
      if (layer == 0 || e != 6)
        store.add(cat("m.layers.", layer, ".experts.", e, ".w"), {6, 2}, {{static_cast<i32>(e / 2), 0, 6}});
  const ShardMap map = store.map();
  ASSERT_EQ(map.blocks.size(), 2u);
  const ShardRow& whole = map.rows[map.blocks[0].kinds[0][0].row];
  EXPECT_TRUE(whole.stack);
  EXPECT_EQ(whole.boxes.size(), 4u);  // two experts a rank, as one box
  EXPECT_EQ(whole.boxes[1].member, 2);
  EXPECT_EQ(whole.boxes[1].count, 2);
  EXPECT_TRUE(whole.faults.empty());
  const ShardRow& lacking = map.rows[map.blocks[1].kinds[0][0].row];
  ASSERT_EQ(lacking.faults.size(), 1u);
  EXPECT_EQ(lacking.faults[0].kind, ShardFault::Kind::kAbsent);
  EXPECT_EQ(lacking.faults[0].member, 6);
  EXPECT_TRUE(map.blocks[1].faulty);
}

TEST(ShardMap, HasHolesOverlapsAndLostFilesWhereTheyAre) {
  RankStore store(3);
  store.add("hole", {9, 2}, {{0, 0, 3}, {2, 5, 4}});
  store.add("twice", {9, 2}, {{0, 0, 5}, {1, 3, 6}});
  store.add("outside", {4, 2}, {{0, 0, 4}, {1, 4, 2}});
  store.add("sound", {4, 2}, {{0, 0, 4}});
  store.add("lost", {4, 2}, {{0, 0, 1}, {2, 1, 3}});
  store.lose(2);
  const ShardMap map = store.map();
  std::map<std::string, const ShardRow*> rows;
  for (const ShardRow& row : map.rows) rows[row.before] = &row;
  ASSERT_EQ(rows["hole"]->faults.size(), 2u);  // the file of rank 2 is lost, too
  const ShardFault& hole = rows["hole"]->faults[1];
  EXPECT_EQ(map_fault_name(hole.kind), "hole");
  EXPECT_EQ(hole.offsets, (std::vector<i64>{3, 0}));
  EXPECT_EQ(hole.sizes, (std::vector<i64>{2, 2}));
  ASSERT_EQ(rows["twice"]->faults.size(), 1u);
  EXPECT_EQ(map_fault_name(rows["twice"]->faults[0].kind), "overlap");
  EXPECT_EQ(rows["twice"]->faults[0].first, 0);
  EXPECT_EQ(rows["twice"]->faults[0].second, 1);
  EXPECT_EQ(rows["twice"]->faults[0].offsets, (std::vector<i64>{3, 0}));
  EXPECT_EQ(rows["twice"]->faults[0].sizes, (std::vector<i64>{2, 2}));
  EXPECT_EQ(map_fault_name(rows["outside"]->faults.at(0).kind), "outside");
  EXPECT_EQ(rows["outside"]->faults[0].first, 1);
  EXPECT_TRUE(rows["sound"]->faults.empty());
  EXPECT_EQ(map_fault_name(rows["lost"]->faults.at(0).kind), "lost");
  EXPECT_EQ(rows["lost"]->faults[0].first, 2);
  EXPECT_EQ(map.faulty_tensors, 4);
  EXPECT_TRUE(map.columns[2].lost);
  EXPECT_FALSE(map.columns[0].lost);
}

// Random cuts of random stacks over many ranks: however many ranks share a column, it has the items of its
// ranks.
TEST(ShardMap, GivesAColumnWhatItsRanksHave) {
  std::mt19937 random(11);
  for (int round = 0; round < 30; round++) {
    const i64 ranks = 2 + random() % 20, members = 1 + random() % 9, rows = 1 + random() % 7;
    RankStore store(ranks);
    std::map<i64, std::set<std::pair<i64, i64>>> want;  // by rank
    for (i64 m = 0; m < members; m++) {
      std::vector<std::tuple<i32, i64, i64>> pieces;
      i64 at = 0;
      for (i32 r = 0; r < ranks && at < rows; r++) {
        const i64 count = r + 1 == ranks ? rows - at : std::min<i64>(rows - at, random() % 4);
        pieces.emplace_back(r, at, count);
        for (i64 i = 0; i < count; i++) want[r].emplace(m, at + i);
        at += count;
      }
      store.add(cat("m.layers.0.experts.", m, ".w"), {rows, 2}, pieces);
    }
    for (const i64 most : {i64{1}, i64{3}, i64{7}, ranks}) {
      const ShardMap map = store.map({.columns = most});
      ASSERT_LE(std::ssize(map.columns), most);
      ASSERT_EQ(map.rows.size(), 1u);
      EXPECT_EQ(map.faulty_tensors, 0);
      for (i64 c = 0; c < std::ssize(map.columns); c++) {
        std::set<std::pair<i64, i64>> items;
        for (i64 r = c * map.per_column; r < std::min(ranks, (c + 1) * map.per_column); r++)
          items.insert(want[r].begin(), want[r].end());
        EXPECT_EQ(rows_of(map.rows[0], c), items) << round << ' ' << most << ' ' << c;
      }
    }
  }
}

TEST(ShardMap, StaysSmallAndKeepsWhatIsFaulty) {
  RankStore store(64);
  for (i64 t = 0; t < 300; t++) {
    std::vector<std::tuple<i32, i64, i64>> pieces;
    for (i32 r = 0; r < 64; r++)
      // Uneven, so that no two are alike
      if (t != 299 || r != 9) pieces.emplace_back(r, 2 * r + (r > t % 64 ? 1 : 0), r == t % 64 ? 3 : 2);
    store.add(cat("t", t, "_w"), {129, t + 1}, pieces);
  }
  const ShardMap map = store.map({.columns = 64, .rows = 100, .boxes = 1000});
  EXPECT_EQ(map.per_column, 4);  // 16 columns, not fewer
  EXPECT_EQ(map.rows.size(), 101u);
  EXPECT_EQ(map.tensors, 300);
  EXPECT_EQ(map.tensors_left_out, 199);
  i64 boxes = 0;
  for (const ShardRow& row : map.rows) boxes += std::ssize(row.boxes);
  EXPECT_LE(boxes, 1000);
  EXPECT_GT(map.rows_not_drawn, 0);
  const ShardRow& faulty = map.rows.back();
  EXPECT_EQ(faulty.before, "t299_w");
  EXPECT_TRUE(faulty.drawn);
  ASSERT_EQ(faulty.faults.size(), 1u);
  EXPECT_EQ(map_fault_name(faulty.faults[0].kind), "hole");
}

}  // namespace
}  // namespace mckpt::impl::shard_map_test
