// The ranks that hold nothing of a group, by the boxes of states: three ranks, of which the last has no vector.
#include "convert/optimizer/empty_shards.h"

#include <gtest/gtest.h>

#include "convert/optimizer/content.h"
#include "tests/support/table_store.h"

namespace mckpt::impl {
namespace empty_shards_test {

class EmptyShardsTest : public testing::Test {
 protected:
  EmptyShardsTest() : store_("nowhere") {
    content_.groups = {{"group 0", {}, 0}, {"group 1", {}, 0}};
    add("matrix", {12, 4}, 0, {{0, 4}, {4, 4}, {8, 4}});
    add("vector", {5}, 1, {{0, 3}, {3, 2}, {5, 0}});
    add("other vector", {2}, 1, {{0, 2}, {2, 0}, {2, 0}});
  }

  // `rows`: first row and number of rows of each rank.
  void add(const char* name, std::vector<i64> dims, i64 group, const std::vector<std::pair<i64, i64>>& rows) {
    OptimizerContent::Parameter p;
    p.name = name, p.group = group, p.tensors = {store_.tensor_count()};
    TableStore::Tensor tensor{name, DType::kF32, dims, {}};
    for (std::size_t rank = 0; rank < rows.size(); rank++) {
      std::vector<i64> offsets(dims.size()), sizes = dims;
      offsets[0] = rows[rank].first, sizes[0] = rows[rank].second;
      TableStore::Piece piece{offsets, sizes, {}, static_cast<i32>(rank)};
      tensor.pieces.push_back(std::move(piece));
    }
    store_.tensors.push_back(std::move(tensor));
    content_.parameters.push_back(std::move(p));
  }

  TableStore store_;
  OptimizerContent content_;
};

TEST_F(EmptyShardsTest, NamesRankAndGroup) {
  const std::vector<EmptyShards> found = empty_shards(store_, content_);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].rank, 2);
  EXPECT_EQ(found[0].group, "group 1");
  EXPECT_EQ(found[0].parameters, 2);
  EXPECT_EQ(empty_shards_text(found), "rank 2 holds no item of group 1 (2 parameters)");
}

TEST_F(EmptyShardsTest, FindsNothingWhereARankHasOneItem) {
  store_.tensors[2].pieces[2] = {{1}, {1}, {}, 2};
  EXPECT_TRUE(empty_shards(store_, content_).empty());
}

TEST_F(EmptyShardsTest, SaysNothingWhereNobodyKnows) {
  store_.tensors[1].pieces[0].rank = -1;
  EXPECT_TRUE(empty_shards(store_, content_).empty());
  store_.tensors[1].pieces[0].rank = 0;
  for (OptimizerContent::Parameter& p : content_.parameters) p.group = -1;
  EXPECT_TRUE(empty_shards(store_, content_).empty());
}

// One rank that wrote everything for all shards nothing.
TEST_F(EmptyShardsTest, SaysNothingOfStatesThatAreNotSharded) {
  for (TableStore::Tensor& t : store_.tensors) t.pieces.resize(1);
  add("elsewhere", {3}, 0, {});
  store_.tensors.back().pieces = {{{0}, {3}, {}, 4}};
  EXPECT_TRUE(empty_shards(store_, content_).empty());
}

TEST(EmptyShardsText, CountsBeyondFour) {
  std::vector<EmptyShards> many;
  for (i64 rank = 0; rank < 6; rank++) many.push_back({rank, "group 0", 1});
  EXPECT_EQ(empty_shards_text({}), "");
  EXPECT_TRUE(empty_shards_text(many).ends_with(
      "rank 3 holds no item of group 0 (1 parameter) and 2 more of this kind"));
}

}  // namespace empty_shards_test
}  // namespace mckpt::impl
