#include "tests/unit/mappings/rules/coverage.h"
#include "core/base/error.h"

#include <gtest/gtest.h>

namespace mckpt::impl {
namespace coverage_test {

std::string refusal(const ShardedTensor& t) {
  try {
    check_coverage(t);
    return "ok";
  } catch (const Error& e) {
    return cat(code_name(e.code()), ": ", e.message());
  }
}

// A 10 x 4 matrix split by columns over two cells, each cut over FSDP ranks as a flat buffer would.
ShardedTensor row_parallel() {
  return {"fc2",
          {40},
          {{{0, 0, 2, {4, 10}, {}}}, {{0, 2, 2, {4, 10}, {}}}},
          {{0, {0, 12}}, {0, {12, 20}}, {1, {0, 16}}, {1, {16, 20}}, {1, {20, 20}}}};
}

TEST(Coverage, ShardsAreCutsOfTheirCells) {
  ShardedTensor t = row_parallel();
  EXPECT_EQ(refusal(t), "ok");
  EXPECT_EQ(to_string(runs_of(t, t.shards[1])), "[24+2 x4/4]");
  EXPECT_TRUE(runs_of(t, t.shards[4]).empty());
}

TEST(Coverage, HolesAndDoublesAreNamedInEitherStep) {
  ShardedTensor t = row_parallel();
  t.shards[1].range.begin = 13;
  EXPECT_EQ(refusal(t), "MC0301: no shard holds item 12 of cell 0");
  t = row_parallel();
  t.shards[4].range = {19, 20};
  EXPECT_EQ(refusal(t), "MC0301: two shards hold item 19 of cell 1");
  t = row_parallel();
  t.cells[1][0].begin = 1;
  EXPECT_EQ(refusal(t), "MC0301: two shards hold item 1 of source tensor 0");
  t = row_parallel();
  t.slot_items.push_back(6);
  EXPECT_EQ(refusal(t), "MC0301: no shard holds item 0 of source tensor 1");
  t = row_parallel();
  t.cells[0][0].slot = 7;
  EXPECT_EQ(refusal(t).substr(0, 6), "MC0104");
  t = row_parallel();
  t.shards[0].cell = 2;
  EXPECT_EQ(refusal(t).substr(0, 6), "MC0104");
}

TEST(Coverage, PaddingBelongsToNoSource) {
  // A vocabulary of 5 rows padded to 6 over two cells.
  ShardedTensor t{"embedding",
                  {10},
                  {{{0, 0, 6, {}, {}}}, {{0, 6, 4, {}, {}}, {kPaddingSlot, 0, 2, {}, {}}}},
                  {{0, {0, 6}}, {1, {0, 6}}}};
  EXPECT_EQ(refusal(t), "ok");
  t.shards[1].range = {0, 4};
  EXPECT_EQ(refusal(t), "MC0301: no shard holds item 4 of cell 1");
}

}  // namespace coverage_test
}  // namespace mckpt::impl
